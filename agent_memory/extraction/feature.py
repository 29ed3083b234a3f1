"""Facts from messages: the rules for taking them."""

from __future__ import annotations

from agent_memory.core.feature import Feature, KeySpace, Services
from agent_memory.extraction.rule_store import RuleStore
from agent_memory.extraction.rules import ExtractionRulesService
from agent_memory.extraction.transfer import RuleTransfer
from agent_memory.foundation import Foundation


def open_extraction(foundation: Foundation, services: Services) -> None:
    """Opens the rules."""
    store = RuleStore(foundation.client, foundation.keys)
    services.add(store, ExtractionRulesService(store), RuleTransfer(store))


EXTRACTION = Feature(
    name="extraction",
    open=open_extraction,
    routes=("agent_memory.extraction.routes:router",),
    keys=(KeySpace("xr:<tenant>", "hash", "rules for taking facts, by namespace and user", "until deleted"),),
    exporter=RuleTransfer,
    eraser=RuleTransfer,
)
