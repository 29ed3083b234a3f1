"""Store the progress of a migration, and find out which of the memories to migrate already exist on this server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from redis.asyncio import Redis

from agent_memory.features.memories.records import WORDS, standing
from agent_memory.features.memories.store import IndexEntry, MemoryStore
from agent_memory.foundation.core.scope import Scope
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.foundation.storage.connection import Pipe, read, redis_errors
from agent_memory.foundation.storage.keyspace import Keys
from agent_memory.foundation.text.retrieval_units import unit_terms
from agent_memory_client.models import MemoryRecord

_LIFETIME_SECONDS = 30 * 24 * 3600


@dataclass(frozen=True, slots=True)
class MovedRecord:
    """A migrated session or view: the fingerprint of the old document, and the version of the copy on this server."""

    fingerprint: str
    version: int


@dataclass(frozen=True, slots=True)
class ExistingDigests:
    """The data that this server already stores for a memory to import.

    `digest` and `alias` are the digests stored under the memory's id and under an alias with that id. `buried` is true
    if the memory was deleted on this server. `holders` maps `standing` fields to the mids of memories with the same words.
    """

    digest: str | None
    alias: str | None
    buried: bool
    holders: Mapping[str, str]


class MoveStore:
    def __init__(self, client: Redis, keys: Keys, memories: MemoryStore) -> None:
        self._client = client
        self._keys = keys
        self._memories = memories

    async def load(self, source: str) -> bytes | None:
        """Return a source's progress as stored by `save`, or None if there is none."""
        key = self._keys.move(source)
        return (await read(self._client, lambda pipe: pipe.get(key)))[0]

    async def save(self, source: str, progress: str, brought: Mapping[bytes, MovedRecord] | None = None) -> None:
        """Store the progress, and the sessions and views migrated since the last call, in one step."""
        key = self._keys.move(source)
        with redis_errors():
            async with self._client.pipeline(transaction=True) as pipe:
                pipe.set(key, progress, ex=_LIFETIME_SECONDS)
                if brought:
                    pipe.hset(f"{key}:s", mapping={name: f"{moved.fingerprint} {moved.version}" for name, moved in brought.items()})
                pipe.expire(f"{key}:s", _LIFETIME_SECONDS)
                await pipe.execute()

    async def brought(self, source: str, names: Sequence[bytes]) -> list[MovedRecord | None]:
        if not names:
            return []
        key = f"{self._keys.move(source)}:s"
        rows = (await read(self._client, lambda pipe: pipe.hmget(key, list(names))))[0]
        return [None if raw is None else _brought(raw) for raw in rows]

    async def here(self, scope: Scope, records: Sequence[MemoryRecord]) -> list[ExistingDigests]:
        mids = [self._memories.mid(scope, record.id) for record in records]
        standings = [standing(scope.tenant, record) for record in records]
        names = [tuple(dict.fromkeys(filter(None, (stands.kin, stands.words, WORDS + stands.words[1:])))) for stands in standings]

        def build(pipe: Pipe) -> None:
            for mid, stands, fields in zip(mids, standings, names, strict=True):
                pipe.hget(self._keys.memory(mid), "h")
                pipe.hget(self._keys.history(mid), "h")
                pipe.exists(self._keys.tombstone(mid))
                pipe.get(self._keys.alias(mid))
                pipe.hmget(self._keys.by(stands.scope), list(fields))

        replies = await read(self._client, build) if records else []
        rows = [replies[start : start + 5] for start in range(0, len(replies), 5)]
        return [_here(fields, row) for fields, row in zip(names, rows, strict=True)]

    async def give_vectors(self, scope: Scope, items: Sequence[tuple[MemoryRecord, NDArray[np.float32]]]) -> None:
        """Index memories that are still waiting for vectors, using the given unit vectors."""
        mids = [self._memories.mid(scope, record.id) for record, _ in items]
        due = self._keys.due(DueKind.MEMORY)

        def build(pipe: Pipe) -> None:
            for mid in mids:
                pipe.hget(self._keys.memory(mid), "n")
                pipe.zscore(due, mid)

        replies = await read(self._client, build) if mids else []
        waiting = zip(mids, items, replies[::2], replies[1::2], strict=True)
        entries = [
            IndexEntry(mid, int(version), int(lease), vector, unit_terms(record))
            for mid, (record, vector), version, lease in waiting
            if version is not None and lease is not None
        ]
        await self._memories.write_index(entries)


def _here(fields: Sequence[str], row: Sequence[Any]) -> ExistingDigests:
    current, past, buried, alias, holders = row
    digest = current if current is not None else past
    return ExistingDigests(
        None if digest is None else digest.decode(),
        None if alias is None else alias.decode().partition(" ")[2],
        bool(buried),
        {name: mid.decode() for name, mid in zip(fields, holders, strict=True) if mid is not None},
    )


def _brought(raw: bytes) -> MovedRecord:
    fingerprint, _, version = raw.decode().partition(" ")
    return MovedRecord(fingerprint, int(version))
