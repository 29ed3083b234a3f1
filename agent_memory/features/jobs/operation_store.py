"""Derive operations from the outbox, the journals and the memories. Operations are not stored."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from redis.asyncio import Redis

from agent_memory.features.jobs.extraction_report import read_report
from agent_memory.features.jobs.order_store import decode_order
from agent_memory.foundation.core.permissions import reaches_session_of
from agent_memory.foundation.core.scope import Scope, SessionRef
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.foundation.llm.threads import run_in_thread
from agent_memory.foundation.storage.connection import Pipe, read, redis_errors, server_ms, write
from agent_memory.foundation.storage.keyspace import Keys, tag
from agent_memory_client.models import OperationKind, OperationRecord, OperationState

OUTBOX_KINDS = frozenset(kind.value for kind in OperationKind if kind is not OperationKind.EXPORT)

_REPLIES_PER_MARK = 6
_SUBJECT = 4
_OF_MEMORIES = (DueKind.MEMORY, DueKind.FOLLOW)
_OF_SESSIONS = (DueKind.SESSION, DueKind.EXTRACTION)


@dataclass(frozen=True, slots=True)
class Mark:
    kind: DueKind
    member: str

    @property
    def operation_id(self) -> str:
        return f"{self.kind}-{self.member}"


def parse_operation_id(operation_id: str) -> Mark | None:
    kind, _, member = operation_id.partition("-")
    return Mark(DueKind(kind), member) if member and kind in OUTBOX_KINDS else None


class OperationStore:
    """Reads operations, and retries or drops dead operations."""

    def __init__(self, client: Redis, keys: Keys) -> None:
        self._client = client
        self._keys = keys

    def sid(self, scope: Scope, ref: SessionRef) -> str:
        return self._keys.sid(scope.tenant, ref)

    def mid(self, scope: Scope, memory_id: str) -> str:
        return self._keys.mid(scope.tenant, memory_id)

    async def hasten_marks(self, marks: Sequence[Mark]) -> None:
        """Make the marks due now. Ignore marks that do not exist."""
        with redis_errors():
            async with self._client.pipeline(transaction=False) as pipe:
                for mark in marks:
                    pipe.zadd(self._keys.due(mark.kind), {mark.member: 0}, xx=True, lt=True)
                pipe.lpush(self._keys.wake, "1")
                pipe.ltrim(self._keys.wake, 0, 0)
                await pipe.execute()

    async def load_operations(self, scope: Scope, marks: Sequence[Mark]) -> list[OperationRecord | None]:
        """Return the operation for each mark, or None if it is missing or inaccessible."""
        if not marks:
            return []

        def build(pipe: Pipe) -> None:
            pipe.time()
            for mark in marks:
                pipe.zscore(self._keys.due(mark.kind), mark.member)
                pipe.zscore(self._keys.dead(mark.kind), mark.member)
                pipe.hget(self._keys.tries(mark.kind), mark.member)
                pipe.hget(self._keys.why(mark.kind), mark.member)
                if mark.kind is DueKind.DELETION:
                    pipe.get(self._keys.erasure(mark.member))
                    pipe.time()
                elif mark.kind is DueKind.ORDER:
                    pipe.get(self._keys.order_of_work(mark.member))
                    pipe.time()
                elif mark.kind in _OF_MEMORIES:
                    pipe.hmget(self._keys.memory(mark.member), ["t", "j"])
                    pipe.exists(self._keys.vector(mark.member))
                elif mark.kind is DueKind.ITEM:
                    pipe.hmget(self._keys.item(mark.member), ["t", "ow"])
                    pipe.hget(self._keys.item(mark.member), "em")
                else:
                    pipe.hgetall(self._keys.session(mark.member).journal)
                    pipe.llen(self._keys.session(mark.member).messages)

        replies = await read(self._client, build)
        seconds, micros = replies[0]
        now = seconds * 1000 + micros / 1000
        rows = [replies[1 + _REPLIES_PER_MARK * i : 1 + _REPLIES_PER_MARK * (i + 1)] for i in range(len(marks))]
        size = sum([len(row[_SUBJECT][1] or b"") for mark, row in zip(marks, rows, strict=True) if mark.kind in _OF_MEMORIES])
        operations = await run_in_thread(lambda: [_operation(scope, mark, now, row) for mark, row in zip(marks, rows, strict=True)], size)
        return operations if scope.agents is None else await self._of_agents(scope, marks, operations)

    async def _of_agents(
        self, scope: Scope, marks: Sequence[Mark], operations: Sequence[OperationRecord | None]
    ) -> list[OperationRecord | None]:
        """Replace operations with None if their session's agent is unknown or inaccessible."""
        of_sessions = [mark for mark in marks if mark.kind in _OF_SESSIONS]
        metas = {mark: self._keys.session(mark.member.partition(".")[0]).meta for mark in of_sessions}
        if not metas:
            return list(operations)
        session_rows = await read(self._client, lambda pipe: [pipe.hmget(meta, ["sid", "ag"]) for meta in metas.values()])
        agents = {mark: agent for mark, (session, agent) in zip(metas, session_rows, strict=True) if session is not None}

        def reaches(mark: Mark) -> bool:
            if mark not in metas:
                return True
            agent = agents.get(mark)
            return mark in agents and reaches_session_of(scope, None if agent is None else agent.decode())

        return [operation if reaches(mark) else None for mark, operation in zip(marks, operations, strict=True)]

    async def list_marks(self, kind: DueKind, *, dead: bool, offset: int, limit: int) -> list[Mark]:
        """Return due marks of one kind, most urgent first, or dead marks, oldest first.

        Does not filter by scope.
        """
        key = self._keys.dead(kind) if dead else self._keys.due(kind)
        members = (await read(self._client, lambda pipe: pipe.zrange(key, offset, offset + limit - 1)))[0]
        return [Mark(kind, member.decode()) for member in members]

    async def list_receipts(self, scope: Scope, offset: int, limit: int) -> list[Mark]:
        """Return the marks for the tenant's finished erasures, newest first."""
        key = self._keys.erasure_receipts(tag(scope.tenant))
        members = (await read(self._client, lambda pipe: pipe.zrevrange(key, offset, offset + limit - 1)))[0]
        return [Mark(DueKind.DELETION, member.decode()) for member in members]

    async def revive_mark(self, mark: Mark) -> None:
        """Make a dead mark due again and reset its attempt count."""
        await self._forget(mark, due=True)

    async def drop_mark(self, mark: Mark) -> None:
        """Delete a dead mark, but not its memory or session. Dropping an erasure also unblocks writes."""
        await self._forget(mark, due=False)
        if mark.kind is DueKind.DELETION:
            (order,) = await read(self._client, lambda pipe: pipe.get(self._keys.erasure(mark.member)))
            place = json.loads(order or b"{}").get("pl")
            if place is not None:
                await write(self._client, lambda pipe: (pipe.zrem(self._keys.erasing, place), pipe.delete(self._keys.erasure(mark.member))))

    async def _forget(self, mark: Mark, *, due: bool) -> None:
        k, now = self._keys, await server_ms(self._client)
        with redis_errors():
            async with self._client.pipeline(transaction=True) as pipe:
                pipe.zrem(k.dead(mark.kind), mark.member)
                pipe.hdel(k.tries(mark.kind), mark.member)
                pipe.hdel(k.why(mark.kind), mark.member)
                if due:
                    pipe.zadd(k.due(mark.kind), {mark.member: now}, lt=True)
                    pipe.lpush(k.wake, "1")
                    pipe.ltrim(k.wake, 0, 0)
                await pipe.execute()


def _operation(scope: Scope, mark: Mark, now: float, row: Sequence[Any]) -> OperationRecord | None:
    due, dead, tries, why, subject, extra = row
    if mark.kind in _OF_MEMORIES:
        about = _memory(scope, subject, extra)
    elif mark.kind is DueKind.DELETION:
        about = _deletion(scope, subject)
    elif mark.kind is DueKind.ORDER:
        about = _order(scope, subject)
    elif mark.kind is DueKind.ITEM:
        about = _item(scope, subject, extra)
    else:
        about = _session(scope, mark, subject, extra)
    if about is None or (scope.limited and not _reaches(scope, mark, about, subject)):
        return None
    note = about.pop("note", None)
    record = (tries or b"0 0").split()
    failed, lease = int(record[0]), int(record[1])
    if due is None and record[2:] and record[2].startswith(b"d"):
        failed = int(record[2][1:])
    state = operation_state(marked=due is not None, dead=dead is not None, leased=lease > now, failed=bool(failed or why))
    return OperationRecord(
        id=mark.operation_id,
        kind=OperationKind(mark.kind.value),
        state=state,
        attempts=failed,
        reason=note if why is None else why.decode("utf-8", "replace"),
        due_at=None if due is None or state is OperationState.RUNNING else datetime.fromtimestamp(float(due) / 1000, UTC),
        **about,
    )


def _reaches(scope: Scope, mark: Mark, about: dict[str, Any], subject: Any) -> bool:
    if mark.kind is DueKind.ORDER:
        order = decode_order(subject)
        return scope.agents is None and (order.namespaces, order.users) == (scope.namespaces, scope.users)
    if mark.kind is DueKind.DELETION and about["stages"]:
        return True  # A receipt contains no names, and only the caller who placed the order knows its id.
    if scope.agents is not None and not _reaches_agent(scope, mark, subject):
        return False
    return scope.reaches(about["namespace"], about["user_id"])


def _reaches_agent(scope: Scope, mark: Mark, subject: Any) -> bool:
    """True unless this is a memory or erasure for an inaccessible agent."""
    if mark.kind in _OF_MEMORIES:
        return json.loads(subject[1]).get("agent_id") in (scope.agents or ())
    return mark.kind is not DueKind.DELETION or json.loads(subject).get("ag") in (scope.agents or ())


def _memory(scope: Scope, subject: Sequence[bytes | None], has_vector: int) -> dict[str, Any] | None:
    owner, raw = subject
    if raw is None or owner != tag(scope.tenant).encode():
        return None
    record = json.loads(raw)
    names = ("namespace", "user_id", "session_id")
    return {**{name: record.get(name) for name in names}, "memory_id": record["id"], "stages": {"stored": 1, "embedded": int(has_vector)}}


def _item(scope: Scope, subject: Sequence[bytes | None], model: bytes | None) -> dict[str, Any] | None:
    tenant, owner = subject
    if owner is None or tenant != tag(scope.tenant).encode():
        return None
    namespace, user_id = json.loads(owner)
    return {
        "namespace": namespace,
        "user_id": user_id,
        "session_id": None,
        "stages": {"stored": 1, "embedded": int(model not in (b"0", None))},
    }


def _deletion(scope: Scope, order: bytes | None) -> dict[str, Any] | None:
    body = {} if order is None else json.loads(order)
    if body.get("tn") != scope.tenant:
        return None
    return {
        "namespace": body.get("ns"),
        "user_id": body.get("us"),
        "session_id": body.get("sid"),
        "stages": body.get("done", {}),
        "note": body.get("note"),
        "ordered_by": body.get("by") or None,
        "ordered_at": body.get("at"),
        "finished_at": body.get("end"),
    }


def _order(scope: Scope, raw: bytes | None) -> dict[str, Any] | None:
    order = None if raw is None else decode_order(raw)
    if order is None or order.tenant != scope.tenant:
        return None
    body = {} if raw is None else json.loads(raw)
    return {
        "namespace": order.arguments.get("namespace"),
        "user_id": order.arguments.get("user_id"),
        "stages": body.get("done", {}),
        "note": body.get("note"),
    }


def _session(scope: Scope, mark: Mark, journal: dict[bytes, bytes], messages: int) -> dict[str, Any] | None:
    if not journal or journal.get(b"tn", b"").decode() != scope.tenant:
        return None

    def text(name: bytes) -> str | None:
        return journal[name].decode() if name in journal else None

    done = "extracted" if mark.kind is DueKind.EXTRACTION else "promoted"
    cursor = b"je" if mark.kind is DueKind.EXTRACTION else b"jp"
    stages = {"messages": int(journal.get(b"sq", 0)), done: int(journal.get(cursor, 0)), "in_session": messages}
    report = read_report(journal) if mark.kind is DueKind.EXTRACTION else {}
    return {"namespace": text(b"ns"), "user_id": text(b"us"), "session_id": text(b"sid"), "stages": stages, **report}


def operation_state(*, marked: bool, dead: bool, leased: bool, failed: bool) -> OperationState:
    """Derive an operation's state from its mark."""
    if not marked:
        return OperationState.DEAD if dead else OperationState.DONE
    if leased:
        return OperationState.RUNNING
    return OperationState.RETRYING if failed else OperationState.PENDING
