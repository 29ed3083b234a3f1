"""Everything that is known of a memory, read as a whole: its current state, its versions, its evidence and its other names. For exports."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from redis.asyncio import Redis

from agent_memory.core.permissions import within
from agent_memory.core.scope import Scope, SessionRef
from agent_memory.jobs.erasure_orders import Erasure
from agent_memory.memories.codec import decode_memory
from agent_memory.memories.records import message_memory_id
from agent_memory.memories.steps import order_of
from agent_memory.memories.usage.store import queue_usage, with_usage
from agent_memory.privacy.erasure import is_meant, selection_of
from agent_memory.storage.connection import Pipe, read
from agent_memory.storage.keyspace import Keys, tag
from agent_memory.storage.search import filters
from agent_memory.storage.search.pagination import walk
from agent_memory.storage.search.results import PAST
from agent_memory.storage.search.schemas import VectorSpec, history_index_name, memory_index_name
from agent_memory_client.models import Evidence, MemoryRecord

State = Literal["current", "over", "gone"]
"""What default reads find, what is no longer true, and what only has former versions."""

MARKS = ("n", "h", "ra", "ro", "of", "rt")
"""What the server notes with a version: its name (µs), the digest of what was given, when it was recorded (and first), what an undo
made it of, when it was retired."""


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a memory. `place` is that of a message among its session's, `vector` as it is stored."""

    record: MemoryRecord
    marks: Mapping[str, str]
    place: str | None = None
    terms: str | None = None
    vector: bytes | None = None


@dataclass(frozen=True, slots=True)
class MemoryExport:
    """A memory as a whole. `aliases` are its other ids, each with the digest of what was given under it."""

    state: State
    now: Version | None
    versions: Sequence[Version] = ()
    aliases: Sequence[tuple[str, str]] = ()
    evidence: Sequence[Evidence] = field(default_factory=list[Evidence])

    @property
    def id(self) -> str:
        """The memory's id."""
        return self.any.id

    @property
    def any(self) -> MemoryRecord:
        """The current record, or of a memory that is gone the last one."""
        return (self.now or self.versions[-1]).record


@dataclass(frozen=True, slots=True)
class _States:
    """What stands in Redis under the names of memories: rows with their vectors, and what leads to versions and other names."""

    usage: Mapping[str, Any]
    standing: dict[str, tuple[State, Mapping[bytes, bytes], bytes | None]] = field(default_factory=dict)
    versions: list[tuple[str, str]] = field(default_factory=list)
    """A memory and one of its former versions."""
    others: list[tuple[str, str]] = field(default_factory=list)
    """A memory and another name of it."""
    evidence: dict[str, list[Evidence]] = field(default_factory=dict)


class MemoryExportReader:
    """Reads dossiers of one user."""

    def __init__(self, client: Redis, keys: Keys, spec: VectorSpec) -> None:
        self._client = client
        self._keys = keys
        self._spec = spec
        self._words = memory_index_name(keys)
        self._history = history_index_name(keys, spec)

    async def now(self) -> int:
        """Redis' time in µs: the clock of all versions."""
        seconds, micros = (await read(self._client, lambda pipe: pipe.time()))[0]
        return seconds * 1_000_000 + micros

    async def pages(self, scope: Scope, what: Erasure, began: int) -> AsyncIterator[list[MemoryExport]]:
        """All memories of a user that stood at `began` (µs), in whatever state, page by page; what changes meanwhile may come twice.

        Memories move from the current ones to the history, so these are walked in that order. One that an undo brings back in between
        has its former versions there.
        """
        clause = filters.where(scope, selection_of(what))
        async for names in walk(self._client, self._words, clause, "c"):
            yield list((await self.read(scope, what, names)).values())
        async for names in walk(self._client, self._history, clause, "c"):
            found = await self.read(scope, what, [name.removeprefix(PAST).partition(".")[0] for name in names])
            leads: dict[str, MemoryExport] = {}
            for name in names:
                mid, _, version = name.removeprefix(PAST).partition(".")
                if (one := found.get(mid)) is not None and _leads(one, version, began):
                    leads[mid] = one
            yield list(leads.values())

    async def changed(self, scope: Scope, what: Erasure, since: int) -> AsyncIterator[list[MemoryExport]]:
        """Those that became current or changed from `since` (µs) until now."""
        until = await self.now()
        async for names in walk(self._client, self._words, filters.where(scope, selection_of(what)), "n", low=since, high=until):
            yield list((await self.read(scope, what, names)).values())

    async def read(self, scope: Scope, what: Erasure, mids: Sequence[str]) -> dict[str, MemoryExport]:
        """The dossiers of these memories by name, of what is the user's and within reach."""
        mids = list(dict.fromkeys(mids))
        if not mids:
            return {}
        states = await self._states(mids)
        rows, digests = await self._former(states)
        past: dict[str, list[Version]] = {}
        for (mid, _), row in zip(states.versions, rows, strict=True):
            version = self._version(scope, what, row, row.get(self._spec.field.encode()))
            if version is not None:
                past.setdefault(mid, []).append(version)
        shown: dict[str, tuple[State, Version]] = {}
        for mid, (state, row, vector) in states.standing.items():
            version = self._version(scope, what, row, vector)
            if version is not None:
                with_usage(version.record, states.usage[mid])
                shown[mid] = state, version
        abouts = {mid: versions[-1].record for mid, versions in past.items()} | {mid: version.record for mid, (_, version) in shown.items()}
        aliases = await self._aliases(scope, states, digests, abouts)
        await self._places(scope, shown)
        exports: dict[str, MemoryExport] = {}
        for mid in mids:
            state, now = shown.get(mid, ("gone", None))
            if now is not None or mid in past:
                exports[mid] = MemoryExport(state, now, past.get(mid, []), aliases.get(mid, []), states.evidence[mid])
        return exports

    async def _states(self, mids: Sequence[str]) -> _States:
        """What stands under the memories' own names, in one round trip."""
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
        states = _States(usage=dict(zip(mids, usage, strict=True)))
        for position, mid in enumerate(mids):
            live, vector, over, ledger, evidence = rows[5 * position : 5 * position + 5]
            if live:
                states.standing[mid] = "current", live, vector
            elif over:
                states.standing[mid] = "over", over, over.get(self._spec.field.encode())
            members = [member.decode() for member in ledger]
            states.versions.extend((mid, member) for member in members if member.isdigit())
            states.others.extend((mid, member[1:]) for member in members if member.startswith("a"))
            states.evidence[mid] = [Evidence.model_validate_json(raw) for raw in evidence]
        return states

    async def _former(self, states: _States) -> tuple[list[Mapping[bytes, bytes]], dict[str, str]]:
        """The rows of former versions, and by their names the digests of what was given under other names; one round trip."""
        if not (states.versions or states.others):
            return [], {}

        def build(pipe: Pipe) -> None:
            for mid, version in states.versions:
                pipe.hgetall(self._keys.history(f"{mid}.{version}"))
            for _, other in states.others:
                pipe.get(self._keys.alias(other))

        replies = await read(self._client, build)
        raws = replies[len(states.versions) :]
        digests = {other: raw.decode().partition(" ")[2] for (_, other), raw in zip(states.others, raws, strict=True) if raw}
        return replies[: len(states.versions)], digests

    async def _aliases(
        self, scope: Scope, states: _States, digests: Mapping[str, str], abouts: Mapping[str, MemoryRecord]
    ) -> dict[str, list[tuple[str, str]]]:
        """The other ids of memories with their digests; `abouts` are the records that are left of the memories."""
        ids = await self.ids(scope, [other for _, other in states.others])
        aliases: dict[str, list[tuple[str, str]]] = {}
        for mid, other in states.others:
            about = abouts.get(mid)
            alias = ids.get(other) or (about and _id_of(scope, self._keys, about, states.evidence[mid], other))
            if alias is not None and other in digests:
                aliases.setdefault(mid, []).append((alias, digests[other]))
        return aliases

    async def _places(self, scope: Scope, shown: dict[str, tuple[State, Version]]) -> None:
        """Adds the places of messages among those of their session."""
        ordered = [(mid, order) for mid, (_, one) in shown.items() if (order := order_of(self._keys, scope.tenant, one.record)) is not None]
        if not ordered:
            return
        places = await read(self._client, lambda pipe: [pipe.zscore(order, mid) for mid, order in ordered])
        for (mid, _), place in zip(ordered, places, strict=True):
            state, one = shown[mid]
            if place is not None:
                shown[mid] = state, Version(one.record, one.marks, repr(float(place)), one.terms, one.vector)

    def _version(self, scope: Scope, what: Erasure, row: Mapping[bytes, bytes], vector: bytes | None) -> Version | None:
        if row.get(b"t") != tag(scope.tenant).encode() or b"j" not in row or b"n" not in row:
            return None
        record = decode_memory(row[b"j"])
        if not (is_meant(what, record) and within(scope, record)):
            return None
        marks = {name: row[name.encode()].decode() for name in MARKS if name.encode() in row}
        place = row[b"os"].decode() if b"os" in row else None
        terms = row[b"k"].decode() if order_of(self._keys, scope.tenant, record) and b"k" in row else None
        return Version(record, marks, place, terms, vector)

    async def ids(self, scope: Scope, mids: Sequence[str]) -> dict[str, str]:
        """The ids of memories by their names, as far as a record of them is left: current, over or a former version."""
        mids = list(dict.fromkeys(mids))
        if not mids:
            return {}
        mine = tag(scope.tenant).encode()

        def build(pipe: Pipe) -> None:
            for mid in mids:
                pipe.hmget(self._keys.memory(mid), ["t", "j"])
                pipe.hmget(self._keys.history(mid), ["t", "j"])
                pipe.zrange(self._keys.ledger(mid), 0, -1)

        rows = await read(self._client, build)
        found: dict[str, str] = {}
        former: list[tuple[str, str]] = []
        for place, mid in enumerate(mids):
            for owner, raw in rows[3 * place : 3 * place + 2]:
                if owner == mine and raw is not None:
                    found[mid] = decode_memory(raw).id
            if mid not in found:
                former += [(mid, name.decode()) for name in rows[3 * place + 2] if name.isdigit()][:1]
        rows = await read(self._client, lambda pipe: [pipe.hmget(self._keys.history(".".join(one)), ["t", "j"]) for one in former])
        for (mid, _), (owner, raw) in zip(former, rows, strict=True):
            if owner == mine and raw is not None:
                found[mid] = decode_memory(raw).id
        return found


def _id_of(scope: Scope, keys: Keys, about: MemoryRecord, evidence: Sequence[Evidence], mid: str) -> str | None:
    """The id of another name of a memory, if a piece of evidence that came under it says so."""
    for piece in evidence:
        ref = SessionRef(piece.session_id or "", about.namespace, about.user_id)
        for named in (piece.memory_id, *(message_memory_id(ref, message) for message in piece.message_ids)):
            if named is not None and keys.mid(scope.tenant, named) == mid:
                return named
    return None


def _leads(one: MemoryExport, version: str, began: int) -> bool:
    """Whether a document of the history stands for its memory, so that each comes once unless it changed meanwhile."""
    if one.state == "over":
        return version == "" or int(one.now.marks["n"] if one.now else 0) > began
    if one.now is not None and int(one.now.marks["n"]) <= began:
        return False  # It came among the current ones.
    before = [int(old.marks["n"]) for old in one.versions if float(old.marks.get("rt", "inf")) * 1e6 <= began]
    return not before or version == str(max(before))


def flat_version(version: Version, *, vector: Any) -> dict[str, Any]:
    """A version as a line of an export says it; `vector` as it is to be written there."""
    found: dict[str, Any] = {"record": version.record.model_dump(mode="json"), "marks": dict(version.marks)}
    optional = {"place": version.place, "terms": version.terms, "vector": vector}
    return found | {name: value for name, value in optional.items() if value is not None}
