"""Merge repeats, and store which memories have been compared."""

from __future__ import annotations

from collections.abc import Sequence

from redis.asyncio import Redis

from agent_memory.features.memories.commit import ChangeOrigin, MemoryCommits, Merge
from agent_memory.features.memories.records import StoredMemory, evidence_of
from agent_memory.foundation.core.scope import Scope
from agent_memory.foundation.storage.connection import read, write
from agent_memory.foundation.storage.keyspace import Keys, digest
from agent_memory_client.models import MemoryRecord

REMEMBERED_SECONDS = 30 * 24 * 3600


class MergeStore:
    def __init__(self, client: Redis, keys: Keys, commits: MemoryCommits) -> None:
        self._client = client
        self._keys = keys
        self._commits = commits

    async def merge_memories(self, scope: Scope, stays: StoredMemory, merged: MemoryRecord, repeats: Sequence[StoredMemory]) -> bool:
        """Merge repeats (never messages) into `stays` as one change. Return False if a memory has changed."""
        pieces = [piece for repeat in repeats for piece in evidence_of(repeat.record)]
        decisions = [Merge(stays, merged, repeats, pieces)]
        return (await self._commits.commit(scope, decisions, ChangeOrigin("compaction"), background=True)).done

    async def are_judged(self, pairs: Sequence[str]) -> list[bool]:
        """For each pair key, return whether a model has judged the pair."""
        return [bool(reply) for reply in await read(self._client, lambda pipe: [pipe.exists(self._keys.apart(pair)) for pair in pairs])]

    async def remember_judged(self, pairs: Sequence[str]) -> None:
        await write(self._client, lambda pipe: [pipe.set(self._keys.apart(pair), "1", ex=REMEMBERED_SECONDS) for pair in pairs])

    async def load_imported(self, waiting: str, limit: int) -> list[str]:
        """Return up to `limit` mids of imported facts from the set at key `waiting`."""
        return [mid.decode() for mid in (await read(self._client, lambda pipe: pipe.srandmember(waiting, limit)))[0]]

    async def note_compared(self, waiting: str, mids: Sequence[str]) -> None:
        await write(self._client, lambda pipe: pipe.srem(waiting, *mids))


def pair_by_words(memory: StoredMemory, other: StoredMemory) -> str:
    """Return a key for the pair based on texts and slots. An undo does not change it."""
    first, second = sorted((memory, other), key=lambda either: either.mid)
    parts = [part for either in (first, second) for part in (either.mid, either.record.text, either.record.slot)]
    return digest("contradiction", *parts)


def pair_by_versions(memory: StoredMemory, other: StoredMemory) -> str:
    """Return a key for the pair based on versions. Any change results in a new key."""
    first, second = sorted((memory, other), key=lambda either: either.mid)
    return digest("pair", first.mid, str(first.version), second.mid, str(second.version))
