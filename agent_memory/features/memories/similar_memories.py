"""Find existing memories that share a new memory's words or slot, or have similar content."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from redis.asyncio import Redis

from agent_memory.features.memories.records import StoredMemory, standing_of
from agent_memory.features.memories.store import MemoryStore
from agent_memory.features.memories.upkeep.scan import Selection
from agent_memory.foundation.core.scope import Scope
from agent_memory.foundation.llm.threads import run_in_thread
from agent_memory.foundation.storage.connection import Pipe, read
from agent_memory.foundation.storage.keyspace import Keys
from agent_memory.foundation.storage.search.filters import where
from agent_memory.foundation.storage.search.results import parse_hits
from agent_memory.foundation.text.terms import query_terms, stems
from agent_memory_client.models import MemoryRecord, MemoryType, MemoryTypeEnum

# The newest memories have no vector yet, so only a keyword search finds them.
_BY_VECTOR = 12
_BY_WORDS = 6
_TERMS = 24
# Paraphrases and opposites have a cosine similarity of about 0.6 or more.
_LEAST_SIMILARITY = 0.4
# Always compare a memory that has the same slot, or that shares at least this part of its words.
_LEAST_SHARE = 0.5
_MOST_COMPARED = 6


@dataclass(frozen=True, slots=True)
class ExistingMemories:
    """Existing memories with a record's id (`same_id`), words (`twin`) or slot (`holder`).

    `near` contains similar memories and their cosine similarity (None if only words matched).
    """

    same_id: StoredMemory | None = None
    twin: StoredMemory | None = None
    holder: StoredMemory | None = None
    near: list[tuple[StoredMemory, float | None]] = field(default_factory=list[tuple[StoredMemory, float | None]])

    @property
    def characters(self) -> int:
        """The total length of the similar memories' texts."""
        return sum(len(memory.record.text) for memory, _ in self.near)


class SimilarMemoryStore:
    def __init__(self, client: Redis, keys: Keys, memories: MemoryStore) -> None:
        self._client = client
        self._keys = keys
        self._memories = memories

    async def load_near(self, scope: Scope, records: Sequence[MemoryRecord], vectors: NDArray[np.float32]) -> list[ExistingMemories]:
        """Return the existing memories for each record.

        `near` contains only the owner's memories, excluding messages.
        """
        existing = await self.load_existing(scope, records)

        def build(pipe: Pipe) -> None:
            for record, vector in zip(records, vectors, strict=True):
                selection = Selection.of(record.namespace, record.user_id)
                clause = where(scope, selection.model_copy(update={"memory_type": MemoryType(ne=MemoryTypeEnum.MESSAGE)}))
                self._memories.queue_nearest(pipe, clause, vector, _BY_VECTOR)
                # A text with only stop words has no terms. The term none0 never occurs, so nothing matches.
                self._memories.queue_words(pipe, clause, query_terms(record.text, _TERMS) or ["none0"], _BY_WORDS)

        replies = await read(self._client, build)
        lists: list[dict[str, float | None]] = []
        for index in range(len(records)):
            similar: dict[str, float | None] = {hit.mid: 1.0 - hit.value for hit in parse_hits(replies[2 * index]).hits}
            for hit in parse_hits(replies[2 * index + 1]).hits:
                similar.setdefault(hit.mid, None)
            lists.append(similar)
        memories = await self._load(scope, set().union(*lists))
        result: list[ExistingMemories] = []
        for record, exact, similar in zip(records, existing, lists, strict=True):
            near = [
                (memories[mid], value)
                for mid, value in similar.items()
                if mid in memories and _owner_of(memories[mid].record) == _owner_of(record)
            ]
            result.append(replace(exact, near=near))
        return result

    async def load_existing(self, scope: Scope, records: Sequence[MemoryRecord]) -> list[ExistingMemories]:
        standings = [standing_of(scope.tenant, record) for record in records]
        names = [
            (self._keys.by(standing.scope), [standing.kin or "-", standing.words or "-", standing.slot or "-"]) for standing in standings
        ]
        replies: list[list[bytes | None]] = await read(self._client, lambda pipe: [pipe.hmget(*each) for each in names])
        named = [[None if mid is None else mid.decode() for mid in (kin or words, slot)] for kin, words, slot in replies]
        memories = await self._load(scope, {mid for pair in named for mid in pair if mid})
        with_ids = await self._memories.find(scope, [record.id for record in records])
        pairs = zip(records, with_ids, strict=True)
        # Ignore another owner's memory under this id: the write will be refused.
        same_ids = [memory if memory is not None and _owner_of(memory.record) == _owner_of(record) else None for record, memory in pairs]
        return [
            ExistingMemories(same_id, memories.get(twin or ""), memories.get(holder or ""))
            for same_id, (twin, holder) in zip(same_ids, named, strict=True)
        ]

    async def _load(self, scope: Scope, mids: set[str]) -> dict[str, StoredMemory]:
        return {memory.mid: memory for memory in await self._memories.load_by_names(scope, sorted(mids)) if memory is not None}


async def comparable_memories(record: MemoryRecord, around: ExistingMemories) -> list[StoredMemory]:
    """Return the memories that a fact may repeat, refine or supersede, most likely first."""
    return await run_in_thread(lambda: _comparable(record, around), around.characters)


def _comparable(record: MemoryRecord, around: ExistingMemories) -> list[StoredMemory]:
    words = set(stems(record.text))
    scored: dict[str, tuple[float, StoredMemory]] = {}
    for memory, similarity in around.near:
        if memory.record.extraction_strategy == "summary":
            continue
        other_words = set(stems(memory.record.text))
        share = len(words & other_words) / max(min(len(words), len(other_words)), 1)
        score = max(similarity or 0.0, share if share >= _LEAST_SHARE else 0.0)
        if score >= _LEAST_SIMILARITY:
            scored[memory.mid] = (score, memory)
    if around.holder is not None:
        scored[around.holder.mid] = (2.0, around.holder)
    ordered = sorted(scored.values(), key=lambda entry: (-entry[0], entry[1].record.id))
    return [memory for _, memory in ordered[:_MOST_COMPARED]]


def _owner_of(record: MemoryRecord) -> tuple[str | None, str | None, str | None]:
    return record.namespace, record.user_id, record.agent_id
