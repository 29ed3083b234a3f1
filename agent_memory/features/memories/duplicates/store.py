"""Merge repeats, and remember pairs that a model judged so it is not asked again."""

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
        """Merge repeats into `stays` as one undoable change; False if any changed meanwhile. Not for messages."""
        pieces = [piece for repeat in repeats for piece in evidence_of(repeat.record)]
        decisions = [Merge(stays, merged, repeats, pieces)]
        outcome = await self._commits.commit(scope, decisions, ChangeOrigin("compaction", reason), background=True, batch=batch)
        return outcome.done

    async def judged_different(self, pairs: Sequence[tuple[StoredMemory, StoredMemory]]) -> list[bool]:
        """True for each pair that was judged different in its present versions."""
        names = [_pair(*pair) for pair in pairs]
        replies = await read(self._client, lambda pipe: [pipe.exists(self._keys.apart(name)) for name in names])
        return [bool(reply) for reply in replies]

    async def remember_different(self, pairs: Sequence[tuple[StoredMemory, StoredMemory]]) -> None:
        if not pairs:
            return
        with redis_errors():
            async with self._client.pipeline(transaction=False) as pipe:
                for pair in pairs:
                    pipe.set(self._keys.apart(_pair(*pair)), "1", ex=_REMEMBERED_SECONDS)
                await pipe.execute()

    async def judged_contradictions(self, pairs: Sequence[tuple[StoredMemory, StoredMemory]]) -> list[bool]:
        """True for each pair that was judged in its present words."""
        replies = await read(self._client, lambda pipe: [pipe.exists(self._keys.apart(_words(*pair))) for pair in pairs])
        return [bool(reply) for reply in replies]

    async def remember_contradictions(self, pairs: Sequence[tuple[StoredMemory, StoredMemory]]) -> None:
        if not pairs:
            return
        with redis_errors():
            async with self._client.pipeline(transaction=False) as pipe:
                for pair in pairs:
                    pipe.set(self._keys.apart(_words(*pair)), "1", ex=_REMEMBERED_SECONDS)
                await pipe.execute()


def _words(memory: StoredMemory, other: StoredMemory) -> str:
    """Key a pair by words and slots: an undo makes new versions of the same words."""
    first, second = sorted((memory, other), key=lambda either: either.mid)
    parts = [part for either in (first, second) for part in (either.mid, either.record.text, either.record.slot)]
    return digest("contradiction", *parts)


def _pair(memory: StoredMemory, other: StoredMemory) -> str:
    first, second = sorted((memory, other), key=lambda either: either.mid)
    return digest("pair", first.mid, str(first.version), second.mid, str(second.version))
