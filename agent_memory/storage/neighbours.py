"""What of a scope a new memory must be compared with: the same words, the same slot, what is near by vector and by words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from redis.asyncio import Redis

from agent_memory.analysis import query_terms
from agent_memory.scope import Scope
from agent_memory.storage.connection import Pipe, read
from agent_memory.storage.filters import where
from agent_memory.storage.keys import Keys
from agent_memory.storage.memories import MemoryStore, parse_hits
from agent_memory.storage.records import READ_FIELDS, Found, read_row, standing
from agent_memory.storage.survey import Selection
from agent_memory_client.models import MemoryRecord, MemoryType, MemoryTypeEnum

# The vector index has all of a scope's memories but the newest, which wait for their vector: those are found by their words.
_BY_VECTOR = 12
_BY_WORDS = 6
_TERMS = 24


@dataclass(frozen=True, slots=True)
class Around:
    """The current memories around a new one: with the same words, with the same slot, and the near ones with their similarity (cosine).

    What is near by its words alone has no vector yet, or is not among the nearest: its similarity is None. `known` says that there is, or
    was, a memory of the same id.
    """

    known: bool = False
    twin: Found | None = None
    holder: Found | None = None
    near: list[tuple[Found, float | None]] = field(default_factory=list[tuple[Found, float | None]])


class NeighbourStore:
    """Reads what is around memories; a handful of round trips for any number of them."""

    def __init__(self, client: Redis, keys: Keys, memories: MemoryStore) -> None:
        self._client = client
        self._keys = keys
        self._memories = memories

    async def around(self, scope: Scope, records: Sequence[MemoryRecord], vectors: NDArray[np.float32]) -> list[Around]:
        """What is around each record, by its vector among others; messages are never, nor is what belongs to another namespace or user."""
        held = await self._held(scope, records)
        known = await self._memories.find(scope, [record.id for record in records])

        def build(pipe: Pipe) -> None:
            for record, vector in zip(records, vectors, strict=True):
                whose = Selection.of(record.namespace, record.user_id)
                clause = where(scope, replace(whose, memory_type=MemoryType(ne=MemoryTypeEnum.MESSAGE)))
                self._memories.queue_nearest(pipe, clause, vector, _BY_VECTOR)
                # A text of small words alone has no terms; the impossible one finds nothing.
                self._memories.queue_words(pipe, clause, query_terms(record.text, _TERMS) or ["none0"], _BY_WORDS)

        replies = await read(self._client, build) if records else []
        lists: list[dict[str, float | None]] = []
        for place in range(len(records)):
            similar: dict[str, float | None] = {hit.mid: 1.0 - hit.value for hit in parse_hits(replies[2 * place]).hits}
            for hit in parse_hits(replies[2 * place + 1]).hits:
                similar.setdefault(hit.mid, None)
            lists.append(similar)
        names = {mid for pair in held for mid in pair if mid}
        found = await self._load(scope, names.union(*lists))
        result: list[Around] = []
        for record, (twin, holder), similar, there in zip(records, held, lists, known, strict=True):
            near = [(found[mid], value) for mid, value in similar.items() if mid in found and _whose(found[mid].record) == _whose(record)]
            result.append(Around(there is not None, found.get(twin or ""), found.get(holder or ""), near))
        return result

    async def _held(self, scope: Scope, records: Sequence[MemoryRecord]) -> list[tuple[str | None, str | None]]:
        places = [standing(scope.tenant, record) for record in records]

        def build(pipe: Pipe) -> None:
            for place in places:
                pipe.hmget(self._keys.by(place.scope), [place.kin or "-", place.slot or "-"])

        replies = await read(self._client, build) if records else []
        return [(twin and twin.decode(), holder and holder.decode()) for twin, holder in replies]

    async def _load(self, scope: Scope, mids: set[str]) -> dict[str, Found]:
        names = sorted(mids)

        def build(pipe: Pipe) -> None:
            for mid in names:
                pipe.hmget(self._keys.memory(mid), READ_FIELDS)

        rows = await read(self._client, build) if names else []
        found = {mid: read_row(scope.tenant, mid, row) for mid, row in zip(names, rows, strict=True)}
        return {mid: one for mid, one in found.items() if one is not None}


def _whose(record: MemoryRecord) -> tuple[str | None, str | None, str | None]:
    return record.namespace, record.user_id, record.agent_id
