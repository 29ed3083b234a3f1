"""Facts from messages: the rules for taking them."""

from __future__ import annotations

from agent_memory.core.feature import Feature, KeySpace, PeriodicJob, Services
from agent_memory.core.settings import Settings
from agent_memory.extraction.rule_store import RuleStore
from agent_memory.extraction.rules import ExtractionRulesService
from agent_memory.extraction.transfer import RuleTransfer
from agent_memory.foundation import Foundation
from agent_memory.memories.search.service import SearchService


def open_extraction(foundation: Foundation, services: Services) -> None:
    """Opens the rules."""
    store = RuleStore(foundation.client, foundation.keys)
    services[SearchService].register_zones(store)
    services.add(store, ExtractionRulesService(store), RuleTransfer(store))


def _minutes_of_contradictions(settings: Settings) -> float | None:
    return settings.compaction.every_minutes if settings.longterm.enabled else None


EXTRACTION = Feature(
    name="extraction",
    open=open_extraction,
    routes=("agent_memory.extraction.routes:router",),
    keys=(KeySpace("xr:<tenant>", "hash", "rules for taking facts, by namespace and user", "until deleted"),),
    schedule={
        "contradictions": PeriodicJob("agent_memory_worker.extraction.contradictions:find_contradictions", _minutes_of_contradictions)
    },
    exporter=RuleTransfer,
    eraser=RuleTransfer,
)
