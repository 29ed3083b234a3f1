"""Orders to delete all of a session's or a user's memories: durable from the moment they are acknowledged, worked off by workers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from redis.asyncio import Redis
from ulid import ULID

from agent_memory.scope import Scope, SessionRef
from agent_memory.storage import filters
from agent_memory.storage.connection import read, redis_errors
from agent_memory.storage.indexes import memory_index_name
from agent_memory.storage.keys import Keys
from agent_memory.storage.memories import MemoryStore, parse_hits
from agent_memory.tasks import DueKind
from agent_memory_client.models import MemoryRecord, Namespace, SessionId, UserId

_PAGE = 500


@dataclass(frozen=True, slots=True)
class Erasure:
    """What is to be deleted: the memories of one session, or (without `session_id`) everything of a user."""

    tenant: str
    namespace: str | None
    user_id: str | None
    session_id: str | None


@dataclass(frozen=True, slots=True)
class _Selection:
    """What the search filter looks at."""

    namespace: Namespace | None
    user_id: UserId | None
    session_id: SessionId | None


class ErasureStore:
    """Orders to delete, and finding what they name."""

    def __init__(self, client: Redis, keys: Keys, memories: MemoryStore) -> None:
        self._client = client
        self._keys = keys
        self._memories = memories

    async def order(self, scope: Scope, what: Erasure) -> str:
        """Writes an order down and marks it due, in one step; returns its name."""
        name = str(ULID())
        body = {"tn": scope.tenant, "ns": what.namespace, "us": what.user_id, "sid": what.session_id}
        with redis_errors():
            async with self._client.pipeline(transaction=True) as pipe:
                pipe.set(self._keys.erasure(name), json.dumps(body))
                pipe.zadd(self._keys.due(DueKind.DELETION), {name: 0})
                pipe.lpush(self._keys.wake, "1")
                pipe.ltrim(self._keys.wake, 0, 0)
                await pipe.execute()
        return name

    async def load(self, name: str) -> Erasure | None:
        """The order of a name, None when it was carried out."""
        raw = (await read(self._client, lambda pipe: pipe.get(self._keys.erasure(name))))[0]
        if raw is None:
            return None
        body = json.loads(raw)
        return Erasure(body["tn"], body["ns"], body["us"], body["sid"])

    async def finished(self, name: str) -> None:
        """Forgets an order that was carried out."""
        with redis_errors():
            await self._client.delete(self._keys.erasure(name))

    async def page(self, scope: Scope, what: Erasure) -> Sequence[MemoryRecord]:
        """Some memories that an order names; none when all are gone. Exactly those: a session of this id of another user is not meant."""
        selection = _Selection(
            None if what.namespace is None else Namespace(eq=what.namespace),
            None if what.user_id is None else UserId(eq=what.user_id),
            None if what.session_id is None else SessionId(eq=what.session_id),
        )
        clause = filters.where(scope, selection)
        index = memory_index_name(self._keys)
        offset = 0
        while True:
            command = ["FT.SEARCH", index, clause, "NOCONTENT", "LIMIT", offset, _PAGE, "DIALECT", 2]
            hits = parse_hits((await read(self._client, lambda pipe, c=command: pipe.execute_command(*c)))[0])
            records = [record for record in await self._memories.fetch(scope, [hit.mid for hit in hits.hits]) if record is not None]
            meant = [record for record in records if _is_meant(what, record)]
            offset += _PAGE
            if meant or offset >= hits.total:
                return meant

    def session(self, what: Erasure) -> SessionRef | None:
        """The session that an order names."""
        return None if what.session_id is None else SessionRef(what.session_id, what.namespace, what.user_id)


def _is_meant(what: Erasure, record: MemoryRecord) -> bool:
    if what.session_id is None:
        return record.user_id == what.user_id and what.namespace in (None, record.namespace)
    return (record.session_id, record.namespace, record.user_id) == (what.session_id, what.namespace, what.user_id)
