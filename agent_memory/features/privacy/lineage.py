"""Read memories with all their versions, evidence and changes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from redis.asyncio import Redis

from agent_memory.features.memories.records import READ_FIELDS, StoredEvidence, StoredMemory, message_memory_id, read_row
from agent_memory.features.memories.steps import MemoryScripts, Step, order_of
from agent_memory.features.memories.upkeep.scan import Selection
from agent_memory.foundation.core.permissions import permit_writing, within
from agent_memory.foundation.core.scope import Scope, SessionRef
from agent_memory.foundation.storage.connection import Pipe, read, write
from agent_memory.foundation.storage.keyspace import Keys, untag
from agent_memory.foundation.storage.search import filters
from agent_memory.foundation.storage.search.indexes import VectorSpec, history_index_name, memory_index_name
from agent_memory.foundation.storage.search.pagination import walk
from agent_memory.foundation.storage.search.results import PAST
from agent_memory_client.models import Evidence, MemoryRecord

_PER_MEMORY = 5
# Decoding a page of memories of 64 KB each takes about ten milliseconds.
_PAGE = 64


@dataclass(frozen=True, slots=True)
class LineageMemory:
    """A memory and its history.

    `now` is the current version, the last version if the memory has ended, or None. `pieces` pairs
    hash fields with evidence added later. `alias_of` is the mid of the memory that this one was
    merged into.
    """

    mid: str
    now: StoredMemory | None
    past: Sequence[StoredMemory]
    pieces: Sequence[tuple[str, Evidence]]
    changes: Sequence[str]
    alias_of: str | None = None
    imported: str | None = None
    edited: bool = False
    """True if the memory was imported but its current version was not."""

    @property
    def versions(self) -> list[StoredMemory]:
        """All versions of the memory, oldest first."""
        return [*self.past, *([] if self.now is None else [self.now])]


def _ignore(_: str) -> None:
    pass


class LineageStore:
    def __init__(self, client: Redis, keys: Keys, scripts: MemoryScripts, spec: VectorSpec) -> None:
        self._client = client
        self._keys = keys
        self._scripts = scripts
        self._indexes = (memory_index_name(keys), history_index_name(keys, spec))

    def mid(self, scope: Scope, memory_id: str) -> str:
        return self._keys.mid(scope.tenant, memory_id)

    def sources(self, scope: Scope, about: MemoryRecord, piece: Evidence) -> list[str]:
        """Return the mids of the messages and memory cited by the evidence."""
        ref = SessionRef(piece.session_id or "", about.namespace, about.user_id)
        ids = [message_memory_id(ref, message) for message in piece.message_ids]
        return [self.mid(scope, memory_id) for memory_id in (*ids, *([piece.memory_id] if piece.memory_id else ()))]

    async def pages(
        self, scope: Scope, selection: Selection, unreadable: Callable[[str], None] = _ignore
    ) -> AsyncIterator[list[LineageMemory]]:
        """Yield pages of memories with at least one version in the selection.

        A memory may appear more than once. `unreadable` is called with the key of each unreadable
        memory.
        """
        clause = filters.where(scope, selection)
        for index in self._indexes:
            async for names in walk(self._client, index, clause, "c"):
                yield await self.read(scope, [name.removeprefix(PAST).partition(".")[0] for name in names], unreadable)

    async def read(self, scope: Scope, mids: Sequence[str], unreadable: Callable[[str], None] = _ignore) -> list[LineageMemory]:
        """Return readable memories whose versions are all accessible to the caller."""
        names = list(dict.fromkeys(mids))
        memories: list[LineageMemory] = []
        for start in range(0, len(names), _PAGE):
            memories += await self._read(scope, names[start : start + _PAGE], unreadable)
        return memories

    async def _read(self, scope: Scope, mids: Sequence[str], unreadable: Callable[[str], None]) -> list[LineageMemory]:
        k = self._keys

        def build(pipe: Pipe) -> None:
            for mid in mids:
                pipe.hmget(k.memory(mid), [*READ_FIELDS, "im"])
                pipe.hmget(k.history(mid), [*READ_FIELDS, "im"])
                pipe.zrange(k.ledger(mid), 0, -1)
                pipe.hgetall(k.evidence(mid))
                pipe.get(k.alias(mid))

        rows = await read(self._client, build)
        ledgers = {mid: [member.decode() for member in rows[_PER_MEMORY * place + 2]] for place, mid in enumerate(mids)}
        names = [(mid, member) for mid, ledger in ledgers.items() for member in ledger if member.isdigit()]

        def queue_versions(pipe: Pipe) -> None:
            for mid, version in names:
                pipe.hmget(k.history(f"{mid}.{version}"), [*READ_FIELDS, "im"])

        former = await read(self._client, queue_versions) if names else []
        versions = [(mid, row) for (mid, _), row in zip(names, former, strict=True)]
        return await asyncio.to_thread(_decoded, scope, ledgers, rows, versions, unreadable)

    async def targets(self, mids: Sequence[str]) -> dict[str, str]:
        """Map alias mids to the mids of their memories."""
        rows = await read(self._client, lambda pipe: [pipe.get(self._keys.alias(mid)) for mid in mids]) if mids else []
        return {mid: raw.decode().partition(" ")[0] for mid, raw in zip(mids, rows, strict=True) if raw is not None}

    async def take_back(self, scope: Scope, memory: LineageMemory, version: StoredMemory) -> bool:
        """Restore a former version and undo any merge. Return False if the memory has changed."""
        permit_writing(scope, [version.record])
        order = order_of(self._keys, scope.tenant, version.record)
        to = "" if memory.now is None else str(memory.now.version)
        step: Step = {"op": "restore", "mid": memory.mid, "from": str(version.version), "to": to, **({"order": order} if order else {})}
        unmerge = [{"op": "unalias", "alias": memory.mid}] if memory.alias_of else []
        return (await self._scripts.run_group(scope.tenant, step, *unmerge))[0] == "ok"

    async def forget_names(self, scope: Scope, memories: Sequence[LineageMemory]) -> None:
        """Delete the aliases that link these merged memories to others."""
        if merged := [{"op": "unalias", "alias": memory.mid} for memory in memories if memory.alias_of is not None]:
            await self._scripts.run_group(scope.tenant, *merged, atomic=False)

    async def forget_evidence(self, scope: Scope, memory: LineageMemory, fields: Sequence[str], names: Sequence[str]) -> None:
        """Delete the evidence stored in `fields` and the aliases (mids) in `names`."""
        group: list[Step] = [{"op": "forget_evidence", "mid": memory.mid, "field": field} for field in fields]
        group += [{"op": "unalias", "alias": name} for name, mid in (await self.targets(names)).items() if mid == memory.mid]
        await self._scripts.run_group(scope.tenant, *group, atomic=False)


async def delete_versions(client: Redis, keys: Keys, names: Sequence[str]) -> None:
    """Delete former versions ("<mid>.<version>") and ended memories ("<mid>")."""

    def build(pipe: Pipe) -> None:
        for name in names:
            mid, _, version = name.partition(".")
            pipe.delete(keys.history(name))
            pipe.zrem(keys.ledger(mid), version)
            pipe.srem(keys.bare, name)

    await write(client, build, atomic=True)


def _decoded(
    scope: Scope,
    ledgers: Mapping[str, Sequence[str]],
    rows: Sequence[Any],
    former: Sequence[tuple[str, Sequence[bytes | None]]],
    unreadable: Callable[[str], None],
) -> list[LineageMemory]:
    """Decode memories. `rows` contains five replies per memory, in the order of `ledgers`."""
    past: dict[str, list[Any]] = {}
    for mid, row in former:
        past.setdefault(mid, []).append(row)
    memories: list[LineageMemory] = []
    for position, (mid, ledger) in enumerate(ledgers.items()):
        current, over, _, evidence, alias = rows[_PER_MEMORY * position : _PER_MEMORY * (position + 1)]
        changes = [member[1:] for member in ledger if member.startswith("c")]
        other = None if alias is None else alias.decode().partition(" ")[0]
        try:
            memory = _parsed(scope, mid, (current, over, past.get(mid, [])), evidence, changes, other)
        except ValueError:
            unreadable(f"m:{mid}")
            continue
        if memory is not None and all(within(scope, version.record) for version in memory.versions):
            memories.append(memory)
    return memories


def _parsed(
    scope: Scope, mid: str, rows: tuple[Any, Any, Sequence[Any]], evidence: dict[bytes, bytes], changes: Sequence[str], alias_of: str | None
) -> LineageMemory | None:
    """Parse a memory, or return None if it is missing. Raises ValueError."""
    current, over, former = rows
    past = [stored for row in former if (stored := read_row(scope.tenant, mid, row[:-1])) is not None]
    now = read_row(scope.tenant, mid, current[:-1]) or read_row(scope.tenant, mid, over[:-1])
    if now is None and not past:
        return None
    marks = [row[-1] for row in (current, over, *reversed(former)) if row[-1] is not None]
    pieces = [(name.decode(), StoredEvidence.model_validate_json(raw)) for name, raw in evidence.items()]
    edited = bool(marks) and now is not None and current[-1] is None and over[-1] is None
    return LineageMemory(mid, now, past, pieces, changes, alias_of, untag(marks[0].decode()) if marks else None, edited)
