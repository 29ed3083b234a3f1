"""Read memories for exports, including their state, versions, evidence and aliases."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from redis.asyncio import Redis

from agent_memory.features.jobs.erasure_orders import Erasure
from agent_memory.features.memories.records import StoredEvidence, decode_memory, message_memory_id
from agent_memory.features.memories.steps import order_of
from agent_memory.features.memories.usage.store import queue_usage, with_usage
from agent_memory.features.privacy.erasure_store import erased_where, is_covered
from agent_memory.foundation.core.permissions import within
from agent_memory.foundation.core.scope import Scope, SessionRef
from agent_memory.foundation.storage.connection import Pipe, read
from agent_memory.foundation.storage.keyspace import Keys, tag
from agent_memory.foundation.storage.search.indexes import VectorSpec, history_index_name, memory_index_name
from agent_memory.foundation.storage.search.pagination import walk
from agent_memory.foundation.storage.search.results import PAST
from agent_memory_client.models import Evidence, MemoryRecord

State = Literal["current", "over", "gone"]
"""The state of a memory.

A "current" memory appears in default reads, an "over" memory has ended, and a "gone" memory has only former versions.
"""

MARKS = ("n", "h", "ra", "ro", "of", "rt", "ed", "ls", "ts")
"""The server's own fields for a version.

`n` name (µs), `h` digest, `ra` recorded, `ro` recorded first, `of` restored from, `rt` retired, `ed` edited, `ls` last
said, `ts` times said.
"""


@dataclass(frozen=True, slots=True)
class Version:
    """A version of a memory. For messages, `position` is the position in the session."""

    record: MemoryRecord
    marks: Mapping[str, str]
    position: str | None = None
    terms: str | None = None
    vector: bytes | None = None


@dataclass(frozen=True, slots=True)
class MemoryExport:
    """A memory and its history. `aliases` contains (id, content digest) pairs."""

    state: State
    now: Version | None
    versions: Sequence[Version] = ()
    aliases: Sequence[tuple[str, str]] = ()
    evidence: Sequence[StoredEvidence] = field(default_factory=list[StoredEvidence])

    @property
    def id(self) -> str:
        return self.any.id

    @property
    def any(self) -> MemoryRecord:
        """The current record, or the latest former record."""
        return (self.now or self.versions[-1]).record


@dataclass(frozen=True, slots=True)
class _StoredParts:
    state: State
    row: dict[bytes, bytes]
    vector: bytes | None
    ledger: Sequence[str]
    evidence: Sequence[StoredEvidence]
    usage: bytes | None


class MemoryExportReader:
    def __init__(self, client: Redis, keys: Keys, spec: VectorSpec) -> None:
        self._client = client
        self._keys = keys
        self._spec = spec
        self._words = memory_index_name(keys)
        self._history = history_index_name(keys, spec)

    async def now(self) -> int:
        """Return the Redis server's time in µs. All versions use this clock."""
        seconds, micros = (await read(self._client, lambda pipe: pipe.time()))[0]
        return seconds * 1_000_000 + micros

    async def pages(self, scope: Scope, erasure: Erasure, began: int) -> AsyncIterator[list[MemoryExport]]:
        """Yield pages of memories that existed at `began` (µs), in any state.

        A changed memory may appear twice.
        """
        clause = erased_where(scope, erasure)
        async for names in walk(self._client, self._words, clause, "c"):
            yield list((await self.read(scope, erasure, names)).values())
        async for names in walk(self._client, self._history, clause, "c"):
            exports = await self.read(scope, erasure, [name.removeprefix(PAST).partition(".")[0] for name in names])
            leads: dict[str, MemoryExport] = {}
            for name in names:
                mid, _, version = name.removeprefix(PAST).partition(".")
                if (memory := exports.get(mid)) is not None and _leads(memory, version, began):
                    leads[mid] = memory
            yield list(leads.values())

    async def changed_since(self, scope: Scope, erasure: Erasure, since: int) -> AsyncIterator[list[MemoryExport]]:
        """Yield pages of current memories that were created or changed after `since` (µs)."""
        until = await self.now()
        async for names in walk(self._client, self._words, erased_where(scope, erasure), "n", low=since, high=until):
            yield list((await self.read(scope, erasure, names)).values())

    async def read(self, scope: Scope, erasure: Erasure, mids: Sequence[str]) -> dict[str, MemoryExport]:
        """Return accessible memories covered by `erasure`, by mid."""
        mids = list(dict.fromkeys(mids))
        if not mids:
            return {}
        memories = await self._stored(mids)
        former, aliases = await self._named_in_ledgers(memories)
        past: dict[str, list[Version]] = {}
        for mid, row in former:
            if (version := self._version(scope, erasure, row, row.get(self._spec.field.encode()))) is not None:
                past.setdefault(mid, []).append(version)
        current: dict[str, tuple[State, Version]] = {}
        for mid, memory in memories.items():
            if (version := self._version(scope, erasure, memory.row, memory.vector)) is not None:
                with_usage(version.record, memory.usage)
                current[mid] = memory.state, version
        latest = {mid: versions[-1] for mid, versions in past.items()} | {mid: version for mid, (_, version) in current.items()}
        names = await self._aliases(scope, memories, latest, aliases)
        await self._add_positions(scope, current)
        exports: dict[str, MemoryExport] = {}
        for mid in mids:
            if mid in latest:
                state, now = current.get(mid, ("gone", None))
                exports[mid] = MemoryExport(state, now, past.get(mid, []), names.get(mid, []), memories[mid].evidence)
        return exports

    async def _stored(self, mids: Sequence[str]) -> dict[str, _StoredParts]:
        k = self._keys

        def build(pipe: Pipe) -> None:
            for mid in mids:
                pipe.hgetall(k.memory(mid))
                pipe.hget(k.vector(mid), self._spec.field)
                pipe.hgetall(k.history(mid))
                pipe.zrange(k.ledger(mid), 0, -1)
                pipe.hvals(k.evidence(mid))
            queue_usage(pipe, k, mids)

        *rows, usage = await read(self._client, build)
        memories: dict[str, _StoredParts] = {}
        for position, mid in enumerate(mids):
            live, vector, over, ledger, evidence = rows[5 * position : 5 * position + 5]
            pieces = [StoredEvidence.model_validate_json(raw) for raw in evidence]
            members = [member.decode() for member in ledger]
            if not live:
                vector = over.get(self._spec.field.encode())
            memories[mid] = _StoredParts("current" if live else "over", live or over, vector, members, pieces, usage[position])
        return memories

    async def _named_in_ledgers(
        self, memories: Mapping[str, _StoredParts]
    ) -> tuple[list[tuple[str, dict[bytes, bytes]]], list[tuple[str, str, bytes | None]]]:
        """Return (mid, row) for former versions, and (mid, alias, raw value) for aliases."""
        versions = [(mid, member) for mid, memory in memories.items() for member in memory.ledger if member.isdigit()]
        others = [(mid, member[1:]) for mid, memory in memories.items() for member in memory.ledger if member.startswith("a")]

        def build(pipe: Pipe) -> None:
            for mid, version in versions:
                pipe.hgetall(self._keys.history(f"{mid}.{version}"))
            for _, other in others:
                pipe.get(self._keys.alias(other))

        replies = await read(self._client, build) if versions or others else []
        rows = [(mid, row) for (mid, _), row in zip(versions, replies, strict=False)]
        return rows, [(mid, other, raw) for (mid, other), raw in zip(others, replies[len(versions) :], strict=True)]

    async def _aliases(
        self,
        scope: Scope,
        memories: Mapping[str, _StoredParts],
        latest: Mapping[str, Version],
        aliases: Sequence[tuple[str, str, bytes | None]],
    ) -> dict[str, list[tuple[str, str]]]:
        ids = await self.ids(scope, [other for _, other, _ in aliases])
        names: dict[str, list[tuple[str, str]]] = {}
        for mid, other, raw in aliases:
            about = latest.get(mid)
            memory_id = ids.get(other) or (about and _id_of(scope, self._keys, about.record, memories[mid].evidence, other))
            if memory_id is not None and raw:
                names.setdefault(mid, []).append((memory_id, raw.decode().partition(" ")[2]))
        return names

    async def _add_positions(self, scope: Scope, current: dict[str, tuple[State, Version]]) -> None:
        orders = {mid: order_of(self._keys, scope.tenant, version.record) for mid, (_, version) in current.items()}
        ordered = [(mid, order) for mid, order in orders.items() if order is not None]
        if not ordered:
            return
        scores = await read(self._client, lambda pipe: [pipe.zscore(order, mid) for mid, order in ordered])
        for (mid, _), score in zip(ordered, scores, strict=True):
            state, version = current[mid]
            if score is not None:
                current[mid] = state, replace(version, position=repr(float(score)))

    def _version(self, scope: Scope, erasure: Erasure, row: Mapping[bytes, bytes], vector: bytes | None) -> Version | None:
        if row.get(b"t") != tag(scope.tenant).encode() or b"j" not in row or b"n" not in row:
            return None
        record = decode_memory(row[b"j"])
        if not (is_covered(erasure, record) and within(scope, record)):
            return None
        marks = {name: row[name.encode()].decode() for name in MARKS if name.encode() in row}
        position = row[b"os"].decode() if b"os" in row else None
        terms = row[b"k"].decode() if order_of(self._keys, scope.tenant, record) and b"k" in row else None
        return Version(record, marks, position, terms, vector)

    async def ids(self, scope: Scope, mids: Sequence[str]) -> dict[str, str]:
        """Map mids to memory ids. Mids that have no records are omitted."""
        mids = list(dict.fromkeys(mids))
        if not mids:
            return {}
        tenant_tag = tag(scope.tenant).encode()

        def build(pipe: Pipe) -> None:
            for mid in mids:
                pipe.hmget(self._keys.memory(mid), ["t", "j"])
                pipe.hmget(self._keys.history(mid), ["t", "j"])
                pipe.zrange(self._keys.ledger(mid), 0, -1)

        rows = await read(self._client, build)
        ids: dict[str, str] = {}
        former: list[tuple[str, str]] = []
        for position, mid in enumerate(mids):
            for owner, raw in rows[3 * position : 3 * position + 2]:
                if owner == tenant_tag and raw is not None:
                    ids[mid] = decode_memory(raw).id
            if mid not in ids:
                former += [(mid, name.decode()) for name in rows[3 * position + 2] if name.isdigit()][:1]
        rows = await read(
            self._client, lambda pipe: [pipe.hmget(self._keys.history(f"{mid}.{version}"), ["t", "j"]) for mid, version in former]
        )
        for (mid, _), (owner, raw) in zip(former, rows, strict=True):
            if owner == tenant_tag and raw is not None:
                ids[mid] = decode_memory(raw).id
        return ids


def _id_of(scope: Scope, keys: Keys, about: MemoryRecord, evidence: Sequence[Evidence], mid: str) -> str | None:
    """Return the id for the alias `mid`, or None if no evidence contains it."""
    for piece in evidence:
        ref = SessionRef(piece.session_id or "", about.namespace, about.user_id)
        for memory_id in (piece.memory_id, *(message_memory_id(ref, message) for message in piece.message_ids)):
            if memory_id is not None and keys.mid(scope.tenant, memory_id) == mid:
                return memory_id
    return None


def _leads(memory: MemoryExport, version: str, began: int) -> bool:
    """True if this history document is where the export includes the memory."""
    if memory.state == "over":
        return version == "" or int(memory.now.marks["n"] if memory.now else 0) > began
    if memory.now is not None and int(memory.now.marks["n"]) <= began:
        return False  # The export already has it among the current memories.
    before = [int(old.marks["n"]) for old in memory.versions if float(old.marks.get("rt", "inf")) * 1e6 <= began]
    return not before or version == str(max(before))
