"""Register the working memory feature: session messages, summaries and data."""

from __future__ import annotations

from agent_memory.features.access.limits import MemoryLimit
from agent_memory.features.jobs.operations import OperationService
from agent_memory.features.memories.changes.service import HistoryService
from agent_memory.features.memories.store import MemoryStore
from agent_memory.features.sessions.former_messages import FormerMessages
from agent_memory.features.sessions.pictures import PictureMemories
from agent_memory.features.sessions.recent import RecentMessages
from agent_memory.features.sessions.service import SessionService
from agent_memory.features.sessions.store import SessionStore
from agent_memory.foundation.core.feature import Feature, Services
from agent_memory.foundation.foundation import Foundation


def open_sessions(foundation: Foundation, services: Services) -> None:
    store = SessionStore(foundation.client, foundation.keys, fsync=foundation.fsync)
    services[OperationService].batches = store
    services.add(
        store,
        RecentMessages(foundation.settings, foundation.keys),
        PictureMemories(services[MemoryStore], foundation.ids),
        SessionService(
            *(foundation.settings, store, foundation.counter, services[MemoryLimit], foundation.ids),
            FormerMessages(foundation.settings, services[MemoryStore], services[HistoryService]),
            extracts=foundation.extracts,
        ),
    )


SESSIONS = Feature(name="sessions", open=open_sessions, routes=("agent_memory.features.sessions.routes:router",))
