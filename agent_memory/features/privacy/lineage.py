"""What memories come from, read as a whole: every version, every piece of evidence, every change. For purging a source."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from redis.asyncio import Redis

from agent_memory.features.memories.records import READ_FIELDS, StoredEvidence, StoredMemory, message_memory_id, read_row
from agent_memory.features.memories.scripts import MemoryScripts
from agent_memory.features.memories.steps import Step, StepGroups, order_of
from agent_memory.features.memories.upkeep.scan import Selection
from agent_memory.foundation.core.permissions import permit_writing, within
from agent_memory.foundation.core.scope import Scope, SessionRef
from agent_memory.foundation.storage.connection import Pipe, read, redis_errors
from agent_memory.foundation.storage.keyspace import Keys, untag
from agent_memory.foundation.storage.search import filters
from agent_memory.foundation.storage.search.indexes import VectorSpec, history_index_name, memory_index_name
from agent_memory.foundation.storage.search.pagination import walk
from agent_memory.foundation.storage.search.results import PAST
from agent_memory_client.models import Evidence, MemoryRecord

_PER_MEMORY = 5
# Of 64 KB each these are decoded in some ten milliseconds; then others have their turn.
_PAGE = 64


@dataclass(frozen=True, slots=True)
class LineageMemory:
    """A memory with all that is kept of it. `now` is its current version, or the one whose time is over; None when it has only former ones.

    `pieces` is evidence that came later, each with its field; `alias_of` the memory (mid) that its id is another name of.
    """

    mid: str
    now: StoredMemory | None
    past: Sequence[StoredMemory]
    pieces: Sequence[tuple[str, Evidence]]
    changes: Sequence[str]
    alias_of: str | None = None
    imported: str | None = None

    @property
    def versions(self) -> list[StoredMemory]:
        """All versions, the oldest first."""
        return [*self.past, *([] if self.now is None else [self.now])]


def _ignore(_: str) -> None:
    """Whoever only looks is not told of what cannot be read."""


class LineageStore:
    """Reads what memories come from, and takes single versions and pieces of evidence away."""

    def __init__(self, client: Redis, keys: Keys, scripts: MemoryScripts, spec: VectorSpec) -> None:
        self._client = client
        self._keys = keys
        self._scripts = scripts
        self._indexes = (memory_index_name(keys), history_index_name(keys, spec))

    def mid(self, scope: Scope, memory_id: str) -> str:
        """The name in keys of a memory."""
        return self._keys.mid(scope.tenant, memory_id)

    def sources(self, scope: Scope, about: MemoryRecord, piece: Evidence) -> list[str]:
        """The memories (mids) that a piece of a memory's evidence is made of: another memory, messages."""
        ref = SessionRef(piece.session_id or "", about.namespace, about.user_id)
        ids = [message_memory_id(ref, message) for message in piece.message_ids]
        return [self.mid(scope, memory_id) for memory_id in (*ids, *([piece.memory_id] if piece.memory_id else ()))]

    async def pages(
        self, scope: Scope, selection: Selection, unreadable: Callable[[str], None] = _ignore
    ) -> AsyncIterator[list[LineageMemory]]:
        """All memories with a version in the selection, in whatever state, page by page; one may come more than once.

        What cannot be read is left out, and told to `unreadable` (its key).
        """
        clause = filters.where(scope, selection)
        for index in self._indexes:
            async for names in walk(self._client, index, clause, "c"):
                yield await self.read(scope, [name.removeprefix(PAST).partition(".")[0] for name in names], unreadable)

    async def read(self, scope: Scope, mids: Sequence[str], unreadable: Callable[[str], None] = _ignore) -> list[LineageMemory]:
        """These memories; without those that are gone, of which a version is out of reach, or that cannot be read (as `pages`)."""
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
        """The memories that these mids are other names of, for those that are."""
        rows = await read(self._client, lambda pipe: [pipe.get(self._keys.alias(mid)) for mid in mids]) if mids else []
        return {mid: raw.decode().partition(" ")[0] for mid, raw in zip(mids, rows, strict=True) if raw is not None}

    async def take_back(self, scope: Scope, memory: LineageMemory, version: StoredMemory) -> bool:
        """Makes a former version of a memory the current one again; False when the memory was changed meanwhile.

        What was merged away is a memory of its own again.
        """
        permit_writing(scope, [version.record])
        order = order_of(self._keys, scope.tenant, version.record)
        to = "" if memory.now is None else str(memory.now.version)
        step: Step = {"op": "restore", "mid": memory.mid, "from": str(version.version), "to": to, **({"order": order} if order else {})}
        steps = StepGroups(self._keys, scope.tenant, atomic=True)
        steps.add_group(step, *([{"op": "unalias", "alias": memory.mid}] if memory.alias_of else []))
        return (await steps.run_steps(self._scripts))[0] == "ok"

    async def forget_versions(self, memory: LineageMemory, versions: Sequence[int]) -> None:
        """Deletes former versions of a memory."""
        with redis_errors():
            async with self._client.pipeline(transaction=True) as pipe:
                for version in versions:
                    pipe.delete(self._keys.history(f"{memory.mid}.{version}"))
                    pipe.zrem(self._keys.ledger(memory.mid), str(version))
                    pipe.srem(self._keys.bare, f"{memory.mid}.{version}")
                await pipe.execute()

    async def forget_names(self, scope: Scope, memories: Sequence[LineageMemory]) -> None:
        """The ids of these memories are no longer other names of what they were merged into."""
        steps = StepGroups(self._keys, scope.tenant, atomic=False)
        for memory in memories:
            if memory.alias_of is not None:
                steps.add_group({"op": "unalias", "alias": memory.mid})
        if any(memory.alias_of is not None for memory in memories):
            await steps.run_steps(self._scripts)

    async def forget_evidence(self, scope: Scope, memory: LineageMemory, fields: Sequence[str], names: Sequence[str]) -> None:
        """Takes pieces of evidence away that came later, and other names (mids) under which they came."""
        group: list[Step] = [{"op": "forget_evidence", "mid": memory.mid, "field": field} for field in fields]
        taken = await read(self._client, lambda pipe: [pipe.get(self._keys.alias(name)) for name in names]) if names else []
        mine = [name for name, raw in zip(names, taken, strict=True) if raw is not None and raw.decode().partition(" ")[0] == memory.mid]
        group += [{"op": "unalias", "alias": name} for name in mine]
        steps = StepGroups(self._keys, scope.tenant, atomic=False)
        steps.add_group(*group)
        await steps.run_steps(self._scripts)


def _decoded(
    scope: Scope,
    ledgers: Mapping[str, Sequence[str]],
    rows: Sequence[Any],
    former: Sequence[tuple[str, Sequence[bytes | None]]],
    unreadable: Callable[[str], None],
) -> list[LineageMemory]:
    """Memories of what was read: five replies for each, in the order of their ledgers, and rows of former versions."""
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
    """A memory of what its keys hold: the current version, the one whose time is over, former ones. Raises ValueError for what is none."""
    current, over, former = rows
    past = [stored for row in former if (stored := read_row(scope.tenant, mid, row[:-1])) is not None]
    now = read_row(scope.tenant, mid, current[:-1]) or read_row(scope.tenant, mid, over[:-1])
    if now is None and not past:
        return None
    marks = [row[-1] for row in (current, over, *reversed(former)) if row[-1] is not None]
    pieces = [(name.decode(), StoredEvidence.model_validate_json(raw)) for name, raw in evidence.items()]
    return LineageMemory(mid, now, past, pieces, changes, alias_of, untag(marks[0].decode()) if marks else None)
