"""Read all of a user's sessions and journals."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from redis.asyncio import Redis

from agent_memory.features.sessions.codec import StoredMessage, decode_entry
from agent_memory.features.sessions.store import SessionStore
from agent_memory.foundation.core.scope import Scope, SessionRef
from agent_memory.foundation.llm.threads import run_in_thread
from agent_memory.foundation.storage.connection import Pipe, read
from agent_memory.foundation.storage.keyspace import Keys
from agent_memory.foundation.storage.search import filters
from agent_memory.foundation.storage.search.indexes import session_index_name
from agent_memory.foundation.storage.search.pagination import walk

_PAGE = 100
_PER_SESSION = 5


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry from a session's message list or journal, raw and decoded."""

    raw: bytes
    stored: StoredMessage

    @property
    def number(self) -> str:
        return str(self.stored.seq)

    def emptied(self) -> str:
        """Return the entry without its text and excluded from promotion."""
        body = json.loads(self.raw.split(b" ", 2)[2])
        body["c"] = ""
        if isinstance(body.get("x"), dict):
            # Content parts repeat the text, so they are removed too.
            body["x"].pop("p", None)
        return f"-{self.stored.seq} 0 {json.dumps(body, ensure_ascii=False, separators=(',', ':'))}"


@dataclass(frozen=True, slots=True)
class JournalCopy:
    """A session's journal, or a batch that extraction has set aside."""

    name: str
    epoch: str
    entries: Sequence[Entry]


@dataclass(frozen=True, slots=True)
class SessionCopy:
    """A session as read from Redis. `live` is false if only pending work remains."""

    sid: str
    ref: SessionRef
    live: bool
    epoch: str
    version: str
    entries: Sequence[Entry] = ()
    context: str | None = None
    memories: Sequence[Mapping[str, Any]] = ()
    own: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    journals: Sequence[JournalCopy] = ()


class SessionReader:
    def __init__(self, client: Redis, keys: Keys, sessions: SessionStore) -> None:
        self._client = client
        self._keys = keys
        self._sessions = sessions

    async def of_user(self, scope: Scope, namespace: str | None, user_id: str, session_id: str | None) -> list[SessionCopy]:
        """Return a user's sessions, including ended sessions with pending work.

        `namespace` and `session_id` narrow the results.
        """
        clause = filters.session_where(scope, namespace=namespace, user_id=user_id)
        sids = [sid async for page in walk(self._client, session_index_name(self._keys), clause, "c") for sid in page]
        sids += await self._sessions.waiting(scope, user_id)
        copies = await self.read(scope, list(dict.fromkeys(sids)))
        return [
            copy
            for copy in copies
            if copy.ref.user_id == user_id and namespace in (None, copy.ref.namespace) and session_id in (None, copy.ref.session_id)
        ]

    async def read(self, scope: Scope, sids: Sequence[str]) -> list[SessionCopy]:
        """Return the existing sessions that the caller may access."""
        copies: list[SessionCopy] = []
        for start in range(0, len(sids), _PAGE):
            copies += await self._read(scope, sids[start : start + _PAGE])
        return copies

    async def _read(self, scope: Scope, sids: Sequence[str]) -> list[SessionCopy]:
        k = self._keys

        def build(pipe: Pipe) -> None:
            for sid in sids:
                keys = k.session(sid)
                pipe.hmget(keys.meta, ["tn", "sid", "ns", "us", "ep", "v", "ctx", "mems"])
                pipe.lrange(keys.messages, 0, -1)
                pipe.hmget(keys.journal, ["tn", "sid", "ns", "us", "ep"])
                pipe.hgetall(keys.journal_own)
                pipe.smembers(keys.dead_batches)

        rows = await read(self._client, build) if sids else []
        copies: list[SessionCopy] = []
        for position, sid in enumerate(sids):
            meta, entries, journal, own, batches = rows[_PER_SESSION * position : _PER_SESSION * (position + 1)]
            owner = meta if meta[4] else journal
            tenant, session, namespace, user = (None if value is None else value.decode() for value in owner[:4])
            if tenant != scope.tenant or session is None or not scope.reaches(namespace, user):
                continue
            names = [*([sid] if journal[4] else []), *(f"{sid}.{cursor.decode()}" for cursor in sorted(batches))]
            copies.append(
                SessionCopy(
                    sid,
                    SessionRef(session, namespace, user),
                    live=meta[4] is not None,
                    epoch=(meta[4] or b"").decode(),
                    version=(meta[5] or b"").decode(),
                    entries=await _decoded(entries),
                    context=None if meta[6] is None else meta[6].decode(),
                    memories=json.loads(meta[7] or b"[]"),
                    own={name.decode(): json.loads(raw)["record"] for name, raw in own.items()},
                    journals=await self._journals(names),
                )
            )
        return copies

    async def _journals(self, names: Sequence[str]) -> list[JournalCopy]:
        def build(pipe: Pipe) -> None:
            for name in names:
                pipe.hget(self._keys.session(name).journal, "ep")
                pipe.lrange(self._keys.session(name).journal_list, 0, -1)

        rows = await read(self._client, build) if names else []
        return [
            JournalCopy(name, epoch.decode(), await _decoded(entries))
            for name, epoch, entries in zip(names, rows[::2], rows[1::2], strict=True)
            if epoch is not None
        ]


async def _decoded(entries: Sequence[bytes]) -> list[Entry]:
    return await run_in_thread(lambda: [Entry(raw, decode_entry(raw)) for raw in entries], sum(map(len, entries)))
