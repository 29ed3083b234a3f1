"""Declare the extraction feature and the periodic job that finds contradictions."""

from __future__ import annotations

from agent_memory.features.extraction.rule_store import RuleStore
from agent_memory.features.extraction.rules import ExtractionRulesService
from agent_memory.features.memories.search.query import QueryBuilder
from agent_memory.foundation.core.feature import Feature, KeySpace, PeriodicJob, Services
from agent_memory.foundation.core.settings import Settings
from agent_memory.foundation.foundation import Foundation


def open_extraction(foundation: Foundation, services: Services) -> None:
    store = RuleStore(foundation.client, foundation.keys)
    services[QueryBuilder].register_zones(store.load_zone)
    services.add(store, ExtractionRulesService(store))


def _minutes_of_contradictions(settings: Settings) -> float | None:
    return settings.compaction.every_minutes if settings.longterm.enabled else None


EXTRACTION = Feature(
    name="extraction",
    open=open_extraction,
    routes=("agent_memory.features.extraction.routes:router",),
    keys=(KeySpace("xr:<tenant>", "hash", "extraction rules, by namespace and user", "until deleted"),),
    schedule={
        "contradictions": PeriodicJob("agent_memory_worker.extraction.contradictions:find_contradictions", _minutes_of_contradictions)
    },
    exporter=RuleStore,
    eraser=RuleStore,
)
