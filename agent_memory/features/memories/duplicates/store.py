"""Merging: one memory takes over what its repeats know; and which memories were found to be different, so that nobody asks again."""

from __future__ import annotations

from collections.abc import Sequence

from redis.asyncio import Redis

from agent_memory.features.memories.commit import ChangeOrigin, MemoryCommits, Merge
from agent_memory.features.memories.records import StoredMemory, evidence_of
from agent_memory.foundation.core.scope import Scope
from agent_memory.foundation.storage.connection import read, redis_errors
from agent_memory.foundation.storage.keyspace import Keys, digest
from agent_memory_client.models import MemoryRecord

_REMEMBERED_SECONDS = 30 * 24 * 3600


class MergeStore:
    """Merges memories, and remembers which pairs were found to be different."""

    def __init__(self, client: Redis, keys: Keys, commits: MemoryCommits) -> None:
        self._client = client
        self._keys = keys
        self._commits = commits

    async def merge_memories(
        self,
        scope: Scope,
        stays: StoredMemory,
        merged: MemoryRecord,
        repeats: Sequence[StoredMemory],
        *,
        batch: str | None = None,
        reason: str | None = None,
    ) -> bool:
        """Writes `merged` in the place of `stays` and retires the repeats; False when any of them changed meanwhile.

        A recorded change, which can be undone. Never for messages, whose place among their neighbours this does not know.
        """
        pieces = [piece for repeat in repeats for piece in evidence_of(repeat.record)]
        decisions = [Merge(stays, merged, repeats, pieces)]
        outcome = await self._commits.commit(scope, decisions, ChangeOrigin("compaction", reason), background=True, batch=batch)
        return outcome.done

    async def judged_different(self, pairs: Sequence[tuple[StoredMemory, StoredMemory]]) -> list[bool]:
        """Which of the pairs were judged to be different, as they are now."""
        names = [_pair(*pair) for pair in pairs]
        replies = await read(self._client, lambda pipe: [pipe.exists(self._keys.apart(name)) for name in names]) if pairs else []
        return [bool(reply) for reply in replies]

    async def remember_different(self, pairs: Sequence[tuple[StoredMemory, StoredMemory]]) -> None:
        """Remembers that these are different; a change of either is a new question."""
        if not pairs:
            return
        with redis_errors():
            async with self._client.pipeline(transaction=False) as pipe:
                for pair in pairs:
                    pipe.set(self._keys.apart(_pair(*pair)), "1", ex=_REMEMBERED_SECONDS)
                await pipe.execute()

    async def judged_contradictions(self, pairs: Sequence[tuple[StoredMemory, StoredMemory]]) -> list[bool]:
        """Which of the pairs were judged as to whether one ends the other, in their present words."""
        replies = await read(self._client, lambda pipe: [pipe.exists(self._keys.apart(_words(*pair))) for pair in pairs]) if pairs else []
        return [bool(reply) for reply in replies]

    async def remember_contradictions(self, pairs: Sequence[tuple[StoredMemory, StoredMemory]]) -> None:
        """Remembers that these were judged, whatever came of it; other words of either are a new question."""
        if not pairs:
            return
        with redis_errors():
            async with self._client.pipeline(transaction=False) as pipe:
                for pair in pairs:
                    pipe.set(self._keys.apart(_words(*pair)), "1", ex=_REMEMBERED_SECONDS)
                await pipe.execute()


def _words(memory: StoredMemory, other: StoredMemory) -> str:
    """Of a pair by its words and slots: an undo, which makes other versions of the same words, asks nothing anew."""
    first, second = sorted((memory, other), key=lambda either: either.mid)
    parts = [part for either in (first, second) for part in (either.mid, either.record.text, either.record.slot)]
    return digest("contradiction", *parts)


def _pair(memory: StoredMemory, other: StoredMemory) -> str:
    first, second = sorted((memory, other), key=lambda either: either.mid)
    return digest("pair", first.mid, str(first.version), second.mid, str(second.version))
