"""Record which lines of another system's data have arrived, so that a repeated import does not restore data deleted since then."""

from __future__ import annotations

import re
from collections.abc import Sequence

from redis.asyncio import Redis

from agent_memory.foundation.core.scope import Scope
from agent_memory.foundation.storage.connection import read, redis_errors
from agent_memory.foundation.storage.keyed_ids import KeyedIds
from agent_memory.foundation.storage.keyspace import Keys, digest

_KEEP_SECONDS = 30 * 24 * 3600
_RECORDED = re.compile(rb'"ra":"[0-9.]+"')


class ImportProgress:
    def __init__(self, client: Redis, keys: Keys, ids: KeyedIds) -> None:
        self._client = client
        self._keys = keys
        self._ids = ids

    def mark_of(self, owner: Sequence[str | None], raw: bytes) -> str:
        """Return a digest of a line and its owner, ignoring the time at which this run created the line."""
        return self._ids.of(*owner, _RECORDED.sub(b"", raw).decode("utf-8", "replace").strip())

    async def arrived(self, scope: Scope, source: str, marks: Sequence[str]) -> set[str]:
        """Return the given marks (see `mark_of`) whose lines have already arrived."""
        if not marks:
            return set()
        key = self._key(scope.tenant, source)
        known = (await read(self._client, lambda pipe: pipe.smismember(key, list(marks))))[0]
        return {mark for mark, is_known in zip(marks, known, strict=True) if is_known}

    async def note(self, scope: Scope, source: str, marks: Sequence[str]) -> None:
        if not marks:
            return
        key = self._key(scope.tenant, source)
        with redis_errors():
            async with self._client.pipeline(transaction=True) as pipe:
                pipe.sadd(key, *marks)
                pipe.expire(key, _KEEP_SECONDS)
                await pipe.execute()

    async def forget(self, scope: Scope, source: str) -> None:
        """Forget which lines of an undone import arrived, so that it can be repeated."""
        with redis_errors():
            await self._client.delete(self._key(scope.tenant, source))

    def _key(self, tenant: str, source: str) -> str:
        return f"{self._keys.root}arrived:{digest(tenant, source)}"
