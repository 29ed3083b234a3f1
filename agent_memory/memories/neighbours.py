"""What of a scope a new memory must be compared with: the same words, the same slot, what is near by vector and by words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from redis.asyncio import Redis

from agent_memory.core.scope import Scope
from agent_memory.memories.records import READ_FIELDS, StoredMemory, read_row, standing
from agent_memory.memories.store import MemoryStore, parse_hits
from agent_memory.memories.upkeep.scan import Selection
from agent_memory.storage.connection import Pipe, read
from agent_memory.storage.keyspace import Keys
from agent_memory.storage.search.filters import where
from agent_memory.text.terms import query_terms
from agent_memory_client.models import MemoryRecord, MemoryType, MemoryTypeEnum

# The vector index has all of a scope's memories but the newest, which wait for their vector: those are found by their words.
_BY_VECTOR = 12
_BY_WORDS = 6
_TERMS = 24


@dataclass(frozen=True, slots=True)
class ExistingMemories:
    """What is there of a new memory: the one of its id (`known`), and the current ones of its words (`twin`) and its slot (`holder`).

    Of several with its words it is the one with its type and date.
    """

    known: StoredMemory | None = None
    twin: StoredMemory | None = None
    holder: StoredMemory | None = None


@dataclass(frozen=True, slots=True)
class NearMemories(ExistingMemories):
    """Also the near ones with their similarity (cosine).

    What is near by its words alone has no vector yet, or is not among the nearest: its similarity is None.
    """

    near: list[tuple[StoredMemory, float | None]] = field(default_factory=list[tuple[StoredMemory, float | None]])


class NeighbourStore:
    """Reads what is around memories; a handful of round trips for any number of them."""

    def __init__(self, client: Redis, keys: Keys, memories: MemoryStore) -> None:
        self._client = client
        self._keys = keys
        self._memories = memories

    async def around(self, scope: Scope, records: Sequence[MemoryRecord], vectors: NDArray[np.float32]) -> list[NearMemories]:
        """What is around each record, by its vector among others; messages are never, nor is what belongs to another namespace or user."""
        held = await self.held(scope, records)

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
        found = await self._load(scope, set().union(*lists))
        result: list[NearMemories] = []
        for record, there, similar in zip(records, held, lists, strict=True):
            near = [(found[mid], value) for mid, value in similar.items() if mid in found and _whose(found[mid].record) == _whose(record)]
            result.append(NearMemories(there.known, there.twin, there.holder, near))
        return result

    async def held(self, scope: Scope, records: Sequence[MemoryRecord]) -> list[ExistingMemories]:
        """What is there of each record."""
        places = [standing(scope.tenant, record) for record in records]

        def build(pipe: Pipe) -> None:
            for place in places:
                pipe.hmget(self._keys.by(place.scope), [place.kin or "-", place.words or "-", place.slot or "-"])

        replies: list[list[bytes | None]] = await read(self._client, build) if records else []
        named = [[None if one is None else one.decode() for one in (kin or words, slot)] for kin, words, slot in replies]
        found = await self._load(scope, {mid for pair in named for mid in pair if mid})
        named_so = await self._memories.find(scope, [record.id for record in records])
        pairs = zip(records, named_so, strict=True)
        # What another owner has under this id is nothing to it: its own will not be stored under that.
        known = [one if one is not None and _whose(one.record) == _whose(record) else None for record, one in pairs]
        return [
            ExistingMemories(there, found.get(twin or ""), found.get(holder or ""))
            for there, (twin, holder) in zip(known, named, strict=True)
        ]

    async def _load(self, scope: Scope, mids: set[str]) -> dict[str, StoredMemory]:
        names = sorted(mids)

        def build(pipe: Pipe) -> None:
            for mid in names:
                pipe.hmget(self._keys.memory(mid), READ_FIELDS)

        rows = await read(self._client, build) if names else []
        found = {mid: read_row(scope.tenant, mid, row) for mid, row in zip(names, rows, strict=True)}
        return {mid: one for mid, one in found.items() if one is not None}


def _whose(record: MemoryRecord) -> tuple[str | None, str | None, str | None]:
    return record.namespace, record.user_id, record.agent_id
