"""Read sessions, and the pending work of ended sessions, for exports."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from redis.asyncio import Redis

from agent_memory.features.sessions.agent_sessions import walk_sessions
from agent_memory.features.sessions.codec import SessionState, StoredMessage, decode_own, decode_session
from agent_memory.features.sessions.store import SessionStore
from agent_memory.foundation.core.feature import SessionPart
from agent_memory.foundation.core.permissions import reaches_session_of
from agent_memory.foundation.core.scope import Scope, SessionRef
from agent_memory.foundation.storage.connection import Pipe, read
from agent_memory.foundation.storage.keyspace import Keys
from agent_memory.foundation.storage.search import filters
from agent_memory.foundation.storage.search.indexes import session_index_name
from agent_memory.foundation.storage.search.pagination import walk
from agent_memory_client.models import MemoryStrategyConfig

_SESSIONS = 10
_JOURNAL = 100_000


@dataclass(frozen=True, slots=True)
class SessionExport:
    """A session to export.

    `promoted` and `extracted` are the numbers of the last processed messages. `seconds_left` is
    None if the session does not expire.
    """

    ref: SessionRef
    messages: Sequence[StoredMessage]
    promoted: int
    extracted: int
    memories: Sequence[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    strategy: MemoryStrategyConfig = field(default_factory=MemoryStrategyConfig)
    state: SessionState | None = None
    seconds_left: int | None = None
    parts: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Data of other features, keyed by part name."""

    @property
    def ended(self) -> bool:
        return self.state is None


class SessionExportReader:
    def __init__(self, client: Redis, keys: Keys, sessions: SessionStore, parts: Sequence[SessionPart]) -> None:
        self._client = client
        self._keys = keys
        self._sessions = sessions
        self._parts = parts

    async def pages(self, scope: Scope, namespace: str | None, user_id: str) -> AsyncIterator[list[SessionExport]]:
        """Yield pages of a user's sessions, oldest first, followed by pending work of ended sessions."""
        clause = filters.session_where(scope, namespace=namespace, user_id=user_id)
        async for sids in walk(self._client, session_index_name(self._keys), clause, "c", page=_SESSIONS):
            sessions = await self._read(scope, sids)
            matching = [session for session in sessions if self._matches(scope, session.ref, namespace, user_id)]
            yield [session for session in matching if session.state is None or reaches_session_of(scope, session.state.agent_id)]
        for sid in await self._sessions.waiting(scope, user_id):
            session = await self._waiting(scope, sid)
            if session is not None and self._matches(scope, session.ref, namespace, user_id):
                yield [session]

    async def agent_pages(self, scope: Scope, namespace: str | None, agent_id: str) -> AsyncIterator[list[SessionExport]]:
        """Yield pages of an agent's sessions, oldest first."""
        async for refs in walk_sessions(self._client, self._keys, scope, namespace, agent_id=agent_id):
            for start in range(0, len(refs), _SESSIONS):
                sids = [self._sessions.sid(scope, ref) for ref in refs[start : start + _SESSIONS]]
                sessions = await self._read(scope, sids)
                yield [session for session in sessions if session.state is not None and session.state.agent_id == agent_id]

    def _matches(self, scope: Scope, ref: SessionRef, namespace: str | None, user_id: str) -> bool:
        return ref.user_id == user_id and namespace in (None, ref.namespace) and scope.reaches(ref.namespace, ref.user_id)

    async def _read(self, scope: Scope, sids: Sequence[str]) -> list[SessionExport]:
        def build(pipe: Pipe) -> None:
            for sid in sids:
                k = self._keys.session(sid)
                pipe.hgetall(k.meta)
                pipe.lrange(k.messages, 0, -1)
                pipe.hmget(k.journal, ["jp", "je"])
                pipe.ttl(k.meta)

        rows = await read(self._client, build)
        exports: list[SessionExport] = []
        for start in range(0, len(rows), 4):
            meta, entries, cursors, ttl = rows[start : start + 4]
            state = decode_session(meta, entries, cursors)
            if state is None or meta[b"tn"].decode() != scope.tenant:
                continue
            left = None if ttl < 0 else ttl
            memories = [
                record | ({"persisted_at": state.promoted[record["id"]]} if record["id"] in state.promoted else {})
                for record in state.memories
            ]
            cursor = state.promoted_to, state.extracted_to
            parts = {part.part: exported for part in self._parts if (exported := part.export_part(meta)) is not None}
            exports.append(SessionExport(state.ref, state.messages, *cursor, memories, state.strategy, state, left, parts))
        return exports

    async def _waiting(self, scope: Scope, sid: str) -> SessionExport | None:
        """Return the pending work of an ended session, or None if the session still exists."""
        if (await read(self._client, lambda pipe: pipe.exists(self._keys.session(sid).meta)))[0]:
            return None
        messages: dict[int, StoredMessage] = {}
        journal, starts = None, list[int]()
        for cursor in ("jp", "je"):
            journal = await self._sessions.journal(sid, cursor, _JOURNAL)
            if journal is None or journal.tenant != scope.tenant:
                return None
            starts.append(journal.start)
            messages |= {stored.seq: stored for stored in journal.waiting}
        assert journal is not None
        own = [decode_own(raw).record.model_dump(mode="json") for raw in journal.own.values()]
        ordered = [messages[seq] for seq in sorted(messages)]
        return SessionExport(journal.ref, ordered, starts[0], starts[1], own, journal.strategy)
