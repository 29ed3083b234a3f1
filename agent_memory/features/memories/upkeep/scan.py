"""Read memories in bulk, along with their counts, groups, repeats and vectors."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Mapping, Sequence
from itertools import product
from typing import Literal, cast

import numpy as np
from numpy.typing import NDArray
from redis.asyncio import Redis
from redis.commands.search import reducers
from redis.commands.search.aggregation import AggregateRequest, Desc
from redisvl.query import CountQuery
from redisvl.query.filter import Num

from agent_memory.features.memories.records import StoredMemory
from agent_memory.features.memories.store import MemoryStore
from agent_memory.foundation.core.errors import RedisUnavailable
from agent_memory.foundation.core.scope import Scope
from agent_memory.foundation.storage.connection import Pipe, read
from agent_memory.foundation.storage.keyspace import Keys, untag
from agent_memory.foundation.storage.search import filters
from agent_memory.foundation.storage.search.indexes import VectorSpec, memory_index_name
from agent_memory.foundation.storage.search.pagination import walk
from agent_memory.foundation.storage.search.queries import name_query, queue_search, search
from agent_memory.foundation.storage.search.results import parse_hits
from agent_memory.foundation.storage.search.syntax import all_of, having
from agent_memory_client.models import Namespace, SessionId, UserId
from agent_memory_client.models.conditions import MemoryFilters

_PAGE = 1000
_GROUP_FIELDS = {"namespace": "ns", "user_id": "u", "session_id": "s", "memory_type": "ty"}
# More terms would make the lookup slower, but not more accurate.
_TWIN_TERMS = 16


class Selection(MemoryFilters):
    """Selects memories. If there are no filters, selects all memories in the scope."""

    @classmethod
    def of(cls, namespace: str | None, user_id: str | None, session_id: str | None = None) -> Selection:
        return cls(
            namespace=None if namespace is None else Namespace(eq=namespace),
            user_id=None if user_id is None else UserId(eq=user_id),
            session_id=None if session_id is None else SessionId(eq=session_id),
        )


class MemoryScan:
    """Reads memories in bulk for background work and summaries. Never writes."""

    def __init__(self, client: Redis, keys: Keys, spec: VectorSpec, memories: MemoryStore) -> None:
        self._client = client
        self._memories = memories
        self._keys = keys
        self._spec = spec
        self._words = memory_index_name(keys)

    async def redis_time(self) -> int:
        """Return the Redis time (µs), which is the basis for all version numbers."""
        seconds, micros = (await read(self._client, lambda pipe: pipe.time()))[0]
        return seconds * 1_000_000 + micros

    async def memory_tenants(self) -> list[str]:
        tags = (await read(self._client, lambda pipe: pipe.execute_command("FT.TAGVALS", self._words, "t")))[0]
        return sorted(untag(value.decode()) for value in tags)

    async def count_memories(self, scope: Scope, selection: Selection) -> int:
        return (await search(self._client, self._words, CountQuery(filters.where(scope, selection)))).total

    async def walk_memories(
        self, scope: Scope, selection: Selection, *, by: Literal["created", "changed"] = "created", since: int | None = None
    ) -> AsyncIterator[list[StoredMemory]]:
        """Yield pages of all selected memories, sorted by creation or last change, oldest first.

        Deletions between pages do not skip other memories. With `by="changed"`, `since` is in µs,
        and a memory that changes during the walk appears again.
        """
        field, low = "c" if by == "created" else "n", -math.inf if since is None else since
        async for names in walk(self._client, self._words, filters.where(scope, selection), field, low=low, page=_PAGE):
            if memories := await self.load_current(scope, names):
                yield memories

    async def load_current(self, scope: Scope, mids: Sequence[str]) -> list[StoredMemory]:
        """Return the accessible current memories with these mids, in the given order."""
        memories = [memory for memory in await self._memories.load_by_names(scope, mids) if memory is not None]
        for memory in memories:
            memory.record.recorded_at = None
        return memories

    async def load_changed(self, scope: Scope, selection: Selection, since: int, limit: int) -> tuple[list[StoredMemory], int]:
        """Return about `limit` changed memories, oldest first, and the next `since` (µs)."""
        clause = all_of(filters.where(scope, selection), Num("n") >= since)
        while True:
            hits = (await search(self._client, self._words, name_query(clause, 0, limit + 1, sort_by=("n", "ASC")))).hits
            memories = await self.load_current(scope, [hit.mid for hit in hits])
            if len(hits) <= limit:
                return memories, max([since, *(memory.version + 1 for memory in memories)])
            # Omit all memories that changed at the same time as the first omitted one.
            following = max((memory.version for memory in memories), default=since)
            if earlier := [memory for memory in memories if memory.version < following]:
                return earlier, following
            # All memories changed at the same time, or the index still lists deleted memories: read more.
            limit *= 2

    async def load_newest(self, scope: Scope, selection: Selection, limit: int) -> tuple[int, list[StoredMemory]]:
        """Return the number of selected memories, and the newest `limit` of them."""
        query = name_query(filters.where(scope, selection), 0, limit, sort_by=("c", "DESC"))
        hits = await search(self._client, self._words, query)
        return hits.total, await self.load_current(scope, [hit.mid for hit in hits.hits])

    async def list_groups(self, scope: Scope, selection: Selection, fields: Sequence[str], limit: int) -> list[dict[str, str]]:
        """Return the most frequent combinations of values in `fields`.

        Ignores memories that lack one of the fields.
        """
        names = [_GROUP_FIELDS[field] for field in fields]
        fields_of_index = [f"@{name}" for name in names]
        request = AggregateRequest(filters.where(scope, selection)).load(*fields_of_index)
        request.group_by(fields_of_index, reducers.count().alias("size")).sort_by(cast("str", Desc("@size")), max=limit).limit(
            0, limit
        ).dialect(2)
        command = ["FT.AGGREGATE", self._words, *request.build_args()]
        reply = (await read(self._client, lambda pipe: pipe.execute_command(*command)))[0]
        if reply.get(b"warning"):
            raise RedisUnavailable(f"the grouping is incomplete: {str(reply[b'warning'][0])[:120]}", retry_after=2)
        rows = [{name.decode(): value for name, value in row[b"extra_attributes"].items() if value} for row in reply[b"results"]]
        groups: dict[tuple[str, ...], None] = {}
        for row in rows:
            if all(name in row for name in names):
                # A memory that was stated in several sessions belongs to each of them.
                groups.update(dict.fromkeys(product(*(row[name].decode().split(",") for name in names))))
        return [{field: untag(value) for field, value in zip(fields, values, strict=True)} for values in list(groups)[:limit]]

    async def find_twins(self, scope: Scope, searches: Sequence[tuple[Selection, Sequence[str]]], limit: int) -> list[list[str]]:
        """For each (selection, index terms), return mids of memories that contain all terms.

        Uses only the first 16 terms.
        """

        def build(pipe: Pipe) -> None:
            for selection, terms in searches:
                clause = having(filters.where(scope, selection), list(dict.fromkeys(terms))[:_TWIN_TERMS], every=True)
                queue_search(pipe, self._words, name_query(clause, 0, limit))

        return [[*parse_hits(reply).names] for reply in await read(self._client, build)]

    async def find_near(
        self, scope: Scope, searches: Sequence[tuple[Selection, NDArray[np.float32]]], radius: float, limit: int
    ) -> list[list[str]]:
        """For each (selection, vector), return up to `limit` mids within the cosine distance `radius`."""
        within, places = self._memories.queue_within, [(filters.where(scope, selection), vector) for selection, vector in searches]
        replies = await read(self._client, lambda pipe: [within(pipe, *place, radius, limit) for place in places])
        return [[*parse_hits(reply).names] for reply in replies]

    async def load_vectors(self, mids: Sequence[str]) -> Mapping[str, NDArray[np.float32]]:
        """Return stored vectors keyed by mid, omitting memories that have none."""
        vectors = await read(self._client, lambda pipe: [pipe.hget(self._keys.vector(mid), self._spec.field) for mid in mids])
        raw = zip(mids, vectors, strict=True)
        return {mid: np.frombuffer(blob, dtype=self._spec.numpy_type).astype(np.float32) for mid, blob in raw if blob is not None}
