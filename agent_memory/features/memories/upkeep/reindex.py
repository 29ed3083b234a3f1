"""Mark all memories for embedding after the embedding model has changed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

from redis.asyncio import Redis
from redisvl.query import CountQuery
from redisvl.schema import IndexSchema

from agent_memory.foundation.core.logs import get_logger
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.foundation.storage.connection import read, redis_errors, write
from agent_memory.foundation.storage.keyspace import Keys
from agent_memory.foundation.storage.outbox import Outbox
from agent_memory.foundation.storage.search.indexes import VectorSpec, drop_index, ensure_index, former_indexes
from agent_memory.foundation.storage.search.queries import search

log = get_logger(__name__)

_BATCH = 500
# During a rolling update, old processes still search with the former model.
_FORMER_SECONDS = 3600.0
_FORMER = "former "


class Reindexer:
    def __init__(self, client: Redis, keys: Keys, outbox: Outbox, spec: VectorSpec, schemas: Mapping[str, IndexSchema]) -> None:
        self._client = client
        self._keys = keys
        self._outbox = outbox
        self._spec = spec
        self.schemas = schemas
        # Returns anything but None while a feature replaces the model's vectors and indexes.
        self.load_change: Callable[[], Awaitable[object]] | None = None

    async def reindex_for_model(self) -> int:
        """Mark all memories for embedding if the model has changed. Return how many were marked."""
        keys = self._keys
        if self.load_change is not None and await self.load_change() is not None:
            return 0
        (before,) = await read(self._client, lambda pipe: pipe.hget(keys.config, "vectors"))
        if before == self._spec.digest.encode():
            return 0
        count = await self.mark_all_memories() if before is not None else 0
        names = ["vectors", self._spec.digest, "model", self._spec.model]
        await write(self._client, lambda pipe: (pipe.hdel(keys.config, "only"), pipe.hset(keys.config, items=names)))
        if count:
            log.warning("embedding model changed; embedding memories again", model=self._spec.model, memories=count)
        return count

    async def drop_former_indexes(self) -> list[str]:
        """Drop a former model's indexes an hour after finding them. Return their names."""
        keys = self._keys
        if self.load_change is not None and await self.load_change() is not None:
            return []
        (seconds, _), config = await read(self._client, lambda pipe: (pipe.time(), pipe.hgetall(keys.config)))
        former = await former_indexes(self._client, keys, self.schemas.values())
        noted = {name.decode(): float(at) for name, at in config.items() if name.startswith(_FORMER.encode())}
        await write(self._client, lambda pipe: [pipe.hsetnx(keys.config, _FORMER + name, str(seconds)) for name in former])
        over = [name for name in former if _FORMER + name in noted and noted[_FORMER + name] + _FORMER_SECONDS <= seconds]
        for name in over:
            await drop_index(self._client, name)
        ended = [name for name in noted if name.removeprefix(_FORMER) in over or name.removeprefix(_FORMER) not in former]
        if ended:
            await write(self._client, lambda pipe: pipe.hdel(keys.config, *ended))
        if over:
            log.info("dropped indexes of the former embedding model", indexes=over)
        return over

    async def mark_all_memories(self) -> int:
        """Mark every memory and version as due for embedding. Return the number of memories.

        Scans all keys, so do not call this in a request.
        """
        count = 0
        with redis_errors():
            async for key in self._client.scan_iter(match=self._keys.history_prefix + "*", count=_BATCH):
                await self._client.sadd(self._keys.bare, key.decode().rsplit(":", 1)[-1])
            batch: list[str] = []
            async for key in self._client.scan_iter(match=self._keys.memory_prefix + "*", count=_BATCH):
                batch.append(key.decode().rsplit(":", 1)[-1])
                if len(batch) >= _BATCH:
                    await self._outbox.mark_due(DueKind.MEMORY, batch)
                    count += len(batch)
                    batch = []
            await self._outbox.mark_due(DueKind.MEMORY, batch)
        return count + len(batch)

    async def rebuild_indexes(self) -> AsyncIterator[tuple[str, int]]:
        """Drop and rebuild the indexes. Yield each index's name and document count.

        Until all indexes are complete, searches return 503, and nothing may write to the store.
        """
        for name, schema in self.schemas.items():
            await drop_index(self._client, schema.index.name)
            await ensure_index(self._client, self._keys, schema)
            yield name, (await search(self._client, schema.index.name, CountQuery("*"))).total
