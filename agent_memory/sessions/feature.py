"""Working memory: the messages, the summary and the data of a session."""

from __future__ import annotations

from agent_memory.access.limits import MemoryLimit
from agent_memory.core.feature import Feature, Services
from agent_memory.foundation import Foundation
from agent_memory.jobs.operations import OperationService
from agent_memory.sessions.agent_sessions import AgentSessions
from agent_memory.sessions.recent import RecentMessages
from agent_memory.sessions.scripts import SessionScripts
from agent_memory.sessions.service import SessionService
from agent_memory.sessions.store import SessionStore


def open_sessions(foundation: Foundation, services: Services) -> None:
    """Opens working memory."""
    store = SessionStore(foundation.client, foundation.keys, SessionScripts(foundation.client, foundation.keys, fsync=foundation.fsync))
    services[OperationService].register_batches(store)
    services.add(
        store,
        AgentSessions(foundation.client, foundation.keys),
        RecentMessages(foundation.settings, foundation.keys),
        SessionService(foundation.settings, store, foundation.counter, services[MemoryLimit], foundation.ids, extracts=foundation.extracts),
    )


SESSIONS = Feature(name="sessions", open=open_sessions, routes=("agent_memory.sessions.routes:router",))
