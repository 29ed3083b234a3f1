"""Store long-term memories in Redis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from redis.asyncio import Redis
from redis.asyncio.client import Pipeline
from redisvl.query.filter import Num
from ulid import ULID

from agent_memory.features.memories.commit import CLIENT_STATEMENT, ChangeKind, ChangeOrigin, Update, change_base, change_fields
from agent_memory.features.memories.records import (
    READ_FIELDS,
    StoredEvidence,
    StoredMemory,
    decode_memory,
    decode_rows,
    metadata_fields,
    owner_name,
    read_row,
)
from agent_memory.features.memories.steps import Fence, MemoryScripts, PutOptions, StepGroups, message_mids, order_of, unique_names
from agent_memory.features.memories.usage.store import queue_usage, with_usage
from agent_memory.foundation.core.errors import IdTaken, NotFound
from agent_memory.foundation.core.input.work import memories_work
from agent_memory.foundation.core.permissions import permit_writing, within
from agent_memory.foundation.core.scope import Scope, SessionRef
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.foundation.llm.threads import run_in_thread
from agent_memory.foundation.storage.connection import read, write
from agent_memory.foundation.storage.keyspace import Keys
from agent_memory.foundation.storage.scripts import Arg, Script, outbox_keys
from agent_memory.foundation.storage.search.indexes import VectorSpec
from agent_memory.foundation.storage.search.queries import MemoryQueries, name_query, search
from agent_memory.foundation.storage.search.results import PAST, Hit, Hits, parse_hits
from agent_memory.foundation.text.retrieval_units import REACH
from agent_memory_client.models import MemoryRecord

__all__ = ["Fence", "Hit", "Hits", "IndexEntry", "IndexJob", "MemoryStore", "parse_hits"]

WRITE_BATCH = 200
# Each indexed memory blocks the engine for about half a millisecond.
_INDEX_BATCH = 16
_VECTORS_AT_ONCE = 32


@dataclass(frozen=True, slots=True)
class IndexJob:
    """A memory to embed and, for a message, its neighbors in the session."""

    mid: str
    version: int
    record: MemoryRecord
    before: list[MemoryRecord]
    after: list[MemoryRecord]
    terms: str | None = None
    """The stored index terms of a retired version, or None for a current version."""
    tenant: str = ""


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """A memory's vector (float32, length 1) and index terms."""

    mid: str
    version: int
    lease: int
    vector: NDArray[np.float32]
    terms: str
    past: bool = False
    passages: Sequence[tuple[str, NDArray[np.float32]]] = ()
    """The index terms and vector of each passage in a long text."""
    marked: MemoryRecord | None = None
    """The record to store again if its metadata was marked, or None."""
    days: Sequence[str] = ()
    """Index tags for the days that a current memory's text mentions."""


class MemoryStore(MemoryQueries):
    def __init__(self, client: Redis, keys: Keys, scripts: MemoryScripts, spec: VectorSpec, *, fsync: bool = False) -> None:
        super().__init__(keys, spec)
        self._client = client
        self._scripts = scripts
        self._outbox = outbox_keys(keys, DueKind.MEMORY)
        self._owners = Script(client, "memories/memory_owners")
        self._index = Script(client, "memories/memory_index")
        self._sweep = Script(client, "memories/memory_sweep")
        self._delete = Script(client, "memories/memory_delete", fsync=fsync)

    def mid(self, scope: Scope, memory_id: str) -> str:
        return self._keys.mid(scope.tenant, memory_id)

    def message_mids(self, scope: Scope, record: MemoryRecord, field: str, piece: StoredEvidence) -> list[str]:
        """Return the mids of messages that a piece of evidence turns into aliases."""
        return message_mids(self._keys, scope.tenant, record, field, piece)

    async def write(
        self, scope: Scope, records: Sequence[MemoryRecord], *, fence: Fence | None = None, background: bool = False
    ) -> list[str] | None:
        """Store memories and return a state for each.

        "new", "changed" and "same" mean that the memory is stored. "again" means that a message
        became evidence for another memory. With any other state, the memory is not stored:

        - "buried": it was deleted before (only with `background`).
        - "slot <mid>": a current memory has its slot (only without a fence).

        A single step writes all records and moves the fence's cursor. Return None if the session
        has changed. If an id is taken, raise IdTaken and write nothing.
        """
        permit_writing(scope, records)
        reply = await self._write(scope, records, fence=fence, background=background)
        return None if reply[0] == "fenced" else reply[1:]

    async def write_all(self, scope: Scope, records: Sequence[MemoryRecord], *, dedupe: bool) -> list[str] | None:
        """Store at most `WRITE_BATCH` memories and return None.

        If a record supersedes or, with `dedupe`, repeats another, store nothing and return each
        record's state. "same" means that the record is already stored. If an id is taken, raise
        IdTaken and write nothing.
        """
        permit_writing(scope, records)
        reply = await self._write(scope, records, dedupe=dedupe, atomic=True)
        return reply[3:] if reply[0] == "moved" else None

    async def _write(
        self,
        scope: Scope,
        records: Sequence[MemoryRecord],
        *,
        fence: Fence | None = None,
        background: bool = False,
        dedupe: bool = False,
        atomic: bool = False,
    ) -> list[str]:
        """Run `memory_commit.lua` and return its reply."""
        if not records and fence is None:
            return ["ok"]
        batch = str(ULID())
        revised = {"id": batch, "fields": change_base(scope.tenant, ChangeKind.UPDATE, CLIENT_STATEMENT, batch, "applied")}
        steps = StepGroups(self._keys, scope.tenant, atomic=atomic, fence=fence, revised=revised)
        options = PutOptions(
            unique="words" if dedupe else None,
            check_owner=True,
            deleted_since=background,
            # A fence moves the cursor in this call, so no later call could resolve a slot conflict.
            slot_settled=fence is not None,
        )
        orders = [order_of(self._keys, scope.tenant, record) for record in records]

        def add_groups() -> None:
            claimed: set[str] = set()
            for index, (record, order) in enumerate(zip(records, orders, strict=True)):
                before: Sequence[MemoryRecord] = ()
                after: Sequence[MemoryRecord] = ()
                if order is not None:
                    # Neighbors in the same call are indexed now; a worker adds the others later.
                    spans = range(max(index - REACH, 0), index), range(index + 1, min(index + 1 + REACH, len(records)))
                    before, after = ([records[i] for i in span if orders[i] == order and records[i].quarantine is None] for span in spans)
                step = steps.put_record(record, options, before=before, after=after)
                names = unique_names(step) if atomic else set[str]()
                if not claimed.isdisjoint(names):
                    step["shares"] = True
                claimed.update(names)
                steps.add_group(step)

        await run_in_thread(add_groups, memories_work(records))
        reply = await steps.run_steps(self._scripts)
        if reply[0] == "taken":
            raise IdTaken([records[int(group) - 1].id for group in reply[1:]])
        return reply

    async def taken_ids(self, scope: Scope, records: Sequence[MemoryRecord]) -> list[str]:
        """Return the ids in `records` that other owners already use."""
        if not records:
            return []
        mids = [self._keys.mid(scope.tenant, record.id) for record in records]
        owners = await self._owners(any=self._keys.config, root=self._keys.root, mids=mids)
        free_or_own = ((b"-", owner_name(record).encode()) for record in records)
        return [record.id for record, owner, fine in zip(records, owners, free_or_own, strict=True) if owner not in fine]

    async def replace_memory(
        self,
        scope: Scope,
        memory: StoredMemory,
        new: MemoryRecord,
        *,
        settled: bool = True,
        origin: ChangeOrigin | None = None,
        ends: Sequence[Update] = (),
    ) -> bool:
        """Replace a memory and apply `ends` to earlier facts, in one change with `origin`.

        Return False if a memory has changed, or if the slot is taken and `settled` is false.
        """
        before, after = (order_of(self._keys, scope.tenant, record) for record in (memory.record, new))
        leave, edited = before if before != after else None, new.text != memory.record.text
        options = PutOptions(expect=str(memory.version), slot_settled=settled, leave=leave, edited=edited)
        state = await self._replace(scope, memory, new, options, origin, ends)
        return state != "moved" and not state.startswith("slot ")

    async def release_memory(self, scope: Scope, memory: StoredMemory, new: MemoryRecord, *, origin: ChangeOrigin | None = None) -> str:
        """Store a memory released from quarantine, and record the change.

        Return "changed", "moved" if its version has changed, or "slot <mid>" if its slot is taken.
        """
        options = PutOptions(expect=str(memory.version), same_text=True, keep_digest=True)
        return await self._replace(scope, memory, new, options, origin)

    async def _replace(
        self,
        scope: Scope,
        memory: StoredMemory,
        new: MemoryRecord,
        options: PutOptions,
        origin: ChangeOrigin | None,
        ends: Sequence[Update] = (),
    ) -> str:
        permit_writing(scope, (memory.record, new, *(end.record for end in ends)))
        steps = StepGroups(self._keys, scope.tenant, atomic=True)
        change = origin and {
            "id": str(ULID()),
            "fields": change_fields(scope.tenant, new, ChangeKind.UPDATE, origin, str(ULID()), "applied"),
            "mids": [memory.mid, *(end.memory.mid for end in ends)],
        }
        puts = [
            steps.put_record(end.record, PutOptions(expect=str(end.memory.version), slot_settled=True, same_text=True, keep_digest=True))
            for end in ends
        ]
        steps.add_group(steps.put_record(new, options), *puts, change=change)
        done, state, *refusal = await steps.run_steps(self._scripts)
        return refusal[0] if done == "moved" else state

    async def require(self, scope: Scope, memory_id: str) -> StoredMemory:
        """Return a memory as `find` does, but raise NotFound if it is missing."""
        if (memory := (await self.find(scope, [memory_id]))[0]) is None:
            raise NotFound(f"Memory with ID {memory_id} not found", field="memory_id")
        return memory

    async def get(self, scope: Scope, ids: Sequence[str]) -> list[MemoryRecord | None]:
        """Return the memory for each id, or None if it is missing."""
        return [None if memory is None else _plain(memory.record) for memory in await self.find(scope, ids)]

    async def find(self, scope: Scope, ids: Sequence[str]) -> list[StoredMemory | None]:
        """Return the current or retired memory for each id, or None. Resolve aliases."""
        return await self._read(scope, [self._keys.mid(scope.tenant, memory_id) for memory_id in ids])

    async def find_by_mids(self, scope: Scope, mids: Sequence[str]) -> list[StoredMemory | None]:
        """Return the memory for each mid, or None. Do not resolve aliases."""
        return await self._read(scope, mids, follow=False)

    async def _read(self, scope: Scope, mids: Sequence[str], *, follow: bool = True) -> list[StoredMemory | None]:
        if not mids:
            return []

        def build(pipe: Pipeline) -> None:
            for mid in mids:
                pipe.hmget(self._keys.memory(mid), READ_FIELDS)
                pipe.hmget(self._keys.history(mid), READ_FIELDS)
                pipe.get(self._keys.alias(mid))
            queue_usage(pipe, self._keys, mids)

        *replies, usage = await read(self._client, build)
        rows = list(zip(mids, replies[::3], replies[1::3], strict=True))

        def decode() -> list[StoredMemory | None]:
            read_rows = [read_row(scope.tenant, mid, current) or read_row(scope.tenant, mid, over) for mid, current, over in rows]
            return [memory if memory is not None and within(scope, memory.record) else None for memory in read_rows]

        memories = await decode_rows(decode, [*replies[::3], *replies[1::3]])
        others: dict[int, str] = {}
        for index, (memory, alias) in enumerate(zip(memories, replies[2::3], strict=True)):
            if memory is not None:
                with_usage(memory.record, usage[index])
            elif alias is not None and follow:
                others[index] = alias.split(b" ", 1)[0].decode()
        if others:
            for index, memory in zip(others, await self._read(scope, list(others.values()), follow=False), strict=True):
                memories[index] = memory
        return memories

    async def fetch_records(self, scope: Scope, names: Sequence[str]) -> list[MemoryRecord | None]:
        """Return the record for each key name, or None if it is missing or inaccessible.

        Names of past versions begin with `PAST`.
        """
        return [None if memory is None else _plain(memory.record) for memory in await self.load_by_names(scope, names)]

    async def load_by_names(self, scope: Scope, names: Sequence[str]) -> list[StoredMemory | None]:
        """Return memories like `fetch_records`, but with versions and recording times."""
        if not names:
            return []

        def build(pipe: Pipeline) -> None:
            for name in names:
                key = self._keys.history(name.removeprefix(PAST)) if name.startswith(PAST) else self._keys.memory(name)
                pipe.execute_command("HMGET", key, *READ_FIELDS)
            queue_usage(pipe, self._keys, mids)

        mids = [name.removeprefix(PAST).split(".")[0] for name in names]
        *rows, usage = await read(self._client, build)
        memories = await decode_rows(lambda: [read_row(scope.tenant, mid, row) for mid, row in zip(mids, rows, strict=True)], rows)
        for memory, used in zip(memories, usage, strict=True):
            if memory is not None:
                with_usage(memory.record, used)
        return [memory if memory is not None and within(scope, memory.record) else None for memory in memories]

    async def delete_records(self, scope: Scope, records: Sequence[MemoryRecord]) -> int:
        """Permanently delete memories and return how many existed.

        Background work cannot restore them.
        """
        return sum(await self.drop_records(scope, [(record, None) for record in records]))

    async def drop_records(self, scope: Scope, items: Sequence[tuple[MemoryRecord, int | None]]) -> list[bool]:
        """Permanently delete memories that have the given versions (None for any version).

        Return whether each one was deleted.
        """
        permit_writing(scope, [record for record, _ in items])
        if not items:
            return []
        args: list[Arg] = []
        mids = [self._keys.mid(scope.tenant, record.id) for record, _ in items]
        evidence = await read(self._client, lambda pipe: [pipe.hgetall(self._keys.evidence(mid)) for mid in mids])
        for mid, (record, version), pieces in zip(mids, items, evidence, strict=True):
            positions = evidence_positions(self._keys, scope.tenant, record, pieces)
            args += [mid, "" if version is None else version, order_of(self._keys, scope.tenant, record) or "", positions]
        return await self.run_deletion(args)

    async def run_deletion(self, memories: Sequence[Arg]) -> list[bool]:
        """Run `memory_delete.lua`. Return True for each deleted memory."""
        reply = await self._delete(**self._outbox, root=self._keys.root, reach=REACH, memories=memories)
        return [bool(deleted) for deleted in reply]

    async def last_readings(self, mids: Sequence[str]) -> dict[str, float]:
        """Return when memories were last read (epoch seconds). Omit memories that were never read."""
        if not mids:
            return {}
        usage = (await read(self._client, lambda pipe: queue_usage(pipe, self._keys, mids)))[0]
        return {mid: int(raw.split()[1]) / 1000 for mid, raw in zip(mids, usage, strict=True) if raw is not None}

    async def find_ended(self, limit: int) -> list[str]:
        """Return the mids of current memories that have ended, across all tenants."""
        seconds, micros = (await read(self._client, lambda pipe: pipe.time()))[0]
        clause = str(Num("z") <= seconds + micros / 1e6)
        return [hit.mid for hit in (await search(self._client, self._words, name_query(clause, 0, limit))).hits]

    async def sweep_memories(self, mids: Sequence[str]) -> int:
        """Move ended memories to the history, and return how many were moved."""
        return int(await self._sweep(**self._outbox, root=self._keys.root, mids=mids))

    async def list_unembedded(self, limit: int) -> list[str]:
        """Return the names of versions that were retired before they had a vector."""
        return [name.decode() for name in (await read(self._client, lambda pipe: pipe.srandmember(self._keys.bare, limit)))[0]]

    async def unmark_unembedded(self, names: Sequence[str]) -> None:
        await write(self._client, lambda pipe: pipe.srem(self._keys.bare, *names))

    async def index_jobs(self, mids: Sequence[str]) -> tuple[list[IndexJob], list[str]]:
        """Return the jobs that index these memories, and the mids of missing memories."""

        def build(pipe: Pipeline) -> None:
            for mid in mids:
                pipe.hmget(self._keys.memory(mid), ["n", "j", "t", "pl"])
                pipe.hmget(self._keys.history(mid), ["n", "j", "t", "k"])

        rows = await read(self._client, build)
        described: list[tuple[str, int, MemoryRecord, str | None, str]] = []
        positions: list[tuple[str, str, str]] = []
        missing: list[str] = []
        for index, mid in enumerate(mids):
            current, past = rows[2 * index : 2 * index + 2]
            version, raw, owner = current[:3] if current[1] is not None else past[:3]
            if raw is None or version is None:
                missing.append(mid)
            else:
                record = decode_memory(raw)
                terms = None if current[1] is not None else past[3].decode()
                tenant = bytes.fromhex(owner.decode()).decode()
                order = None if terms is not None else order_of(self._keys, tenant, record)
                if order is not None:
                    positions.append((mid, order, mid))
                elif terms is None and current[3] is not None:
                    # A statement that absorbed a message is indexed with that message's neighbors.
                    turn, _, session = current[3].decode().partition(" ")
                    sid = self._keys.sid(tenant, SessionRef(session, record.namespace, record.user_id))
                    positions.append((mid, self._keys.order(sid), turn))
                described.append((mid, int(version), record, terms, tenant))
        neighbors = await self._neighbors(positions)
        jobs = [
            IndexJob(mid, version, record, *neighbors.get(mid, ([], [])), terms, owner) for mid, version, record, terms, owner in described
        ]
        return jobs, missing

    async def _neighbors(self, positions: list[tuple[str, str, str]]) -> dict[str, tuple[list[MemoryRecord], list[MemoryRecord]]]:
        """Return the records before and after each mid in its session."""
        ranks = await read(self._client, lambda pipe: [pipe.zrank(order, member) for _, order, member in positions])
        ranked = [(*position, rank) for position, rank in zip(positions, ranks, strict=True) if rank is not None]
        spans = [(order, max(rank - REACH, 0), rank + REACH) for _, order, _, rank in ranked]
        around = await read(self._client, lambda pipe: [pipe.zrange(*span) for span in spans])
        mids = sorted({m.decode() for group in around for m in group})
        texts = dict(zip(mids, await self._texts(mids), strict=True))
        aliased = [m for m, raw in texts.items() if raw is None]
        names = await read(self._client, lambda pipe: [pipe.get(self._keys.alias(m)) for m in aliased])
        targets = {m: raw.split(b" ", 1)[0].decode() for m, raw in zip(aliased, names, strict=True) if raw is not None}
        texts |= dict(zip(targets, await self._texts(list(targets.values())), strict=True))
        records = {m: decode_memory(raw) for m, raw in texts.items() if raw is not None}
        result: dict[str, tuple[list[MemoryRecord], list[MemoryRecord]]] = {}
        for (mid, _, member, _), group in zip(ranked, around, strict=True):
            members = [m.decode() for m in group]
            index = members.index(member) if member in members else 0
            before = [records[m] for m in members[:index] if m in records]
            after = [records[m] for m in members[index + 1 :] if m in records]
            result[mid] = (before, after)
        return result

    async def _texts(self, mids: Sequence[str]) -> list[bytes | None]:
        return await read(self._client, lambda pipe: [pipe.hget(self._keys.memory(m), "j") for m in mids])

    async def write_index(self, items: Sequence[IndexEntry]) -> list[bool]:
        """Index memories and release their claims. Return False for each changed or missing memory."""
        done: list[bool] = []
        batch: list[IndexEntry] = []
        vectors = 0
        for item in items:
            if batch and (len(batch) >= _INDEX_BATCH or vectors + len(item.passages) >= _VECTORS_AT_ONCE):
                done += await self._write_index(batch)
                batch, vectors = [], 0
            batch.append(item)
            vectors += 1 + len(item.passages)
        return done + (await self._write_index(batch) if batch else [])

    async def _write_index(self, items: Sequence[IndexEntry]) -> list[bool]:
        documents: list[str] = []
        args: list[Arg] = []
        for item in items:
            documents.append(self._keys.history(item.mid) if item.past else self._keys.memory(item.mid))
            args += [item.mid, item.version, item.lease, item.terms, *metadata_fields(item.marked), ",".join(item.days)]
            args += [self._spec.field, self._spec.blob(item.vector)]
            args += [2 * len(item.passages), *(part for terms, vector in item.passages for part in (terms, self._spec.blob(vector)))]
        reply = await self._index(**self._outbox, documents=documents, root=self._keys.root, memories=args)
        return [bool(written) for written in reply]


def evidence_positions(keys: Keys, tenant: str, record: MemoryRecord, pieces: Mapping[bytes, bytes]) -> str:
    """Return a "<message order key> <mid>" line for each message in the evidence."""
    lines: list[str] = []
    for name, raw in pieces.items():
        piece = StoredEvidence.model_validate_json(raw)
        if mids := message_mids(keys, tenant, record, name.decode(), piece):
            order = keys.order(keys.sid(tenant, SessionRef(piece.session_id or "", record.namespace, record.user_id)))
            lines += [f"{order} {mid}" for mid in mids]
    return "\n".join(lines)


def _plain(record: MemoryRecord) -> MemoryRecord:
    record.recorded_at = record.retired_at = None
    return record
