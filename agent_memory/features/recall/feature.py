"""Register the memory prompt feature, with its services and routes."""

from __future__ import annotations

from agent_memory.features.extraction.rule_store import RuleStore
from agent_memory.features.memories.search.pages import PageReader
from agent_memory.features.memories.search.service import SearchService
from agent_memory.features.memories.store import MemoryStore
from agent_memory.features.recall.sections.memories import MemoriesSection
from agent_memory.features.recall.sections.session import SessionSection
from agent_memory.features.recall.service import RecallService
from agent_memory.features.sessions.recent import RecentMessages
from agent_memory.features.sessions.store import SessionStore
from agent_memory.foundation.core.feature import Feature, Services
from agent_memory.foundation.foundation import Foundation


def open_recall(foundation: Foundation, services: Services) -> None:
    settings, counter = foundation.settings, foundation.counter
    session = SessionSection(settings, services[SessionStore], counter)
    memories = MemoriesSection(
        settings, services[SearchService], services[PageReader], services[MemoryStore], services[RecentMessages], counter
    )
    recall = RecallService(foundation.reader, session, memories, counter, services[RuleStore], services[SearchService])
    services.add(recall)


RECALL = Feature(
    name="recall",
    open=open_recall,
    routes=("agent_memory.features.recall.routes:router", "agent_memory.features.recall.routes:explain_router"),
)
