"""Show, await, retry and drop background work."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Generator, Sequence
from itertools import islice
from typing import Protocol

from agent_memory.features.jobs.operation_store import OUTBOX_KINDS, Mark, OperationStore, parse_operation_id
from agent_memory.foundation.api.principals import writing
from agent_memory.foundation.core.errors import Conflict, NotFound
from agent_memory.foundation.core.scope import Scope, SessionRef
from agent_memory.foundation.core.task_kinds import MAX_WAIT_SECONDS, DueKind
from agent_memory_client.models import MessageStage, OperationKind, OperationListResponse, OperationRecord, OperationState

_LOOK_SECONDS = 0.02
_LOOKS_GROW = 1.25
_MOST_LOOK_SECONDS = 0.25
# If no worker has started the work after this time, assume that no worker is free.
UNTOUCHED_SECONDS = 3.0
_SCAN = 200


class ReceiptStore(Protocol):
    """Reads operations that have no mark in the outbox, such as exports."""

    async def get(self, scope: Scope, operation_id: str) -> OperationRecord | None:
        """Return the operation, or None if this store does not contain it."""
        ...


class BatchStore(Protocol):
    async def settle(self, sid: str, tenant: str, user_id: str | None, *, batch: str) -> None: ...


class OperationService:
    def __init__(self, store: OperationStore) -> None:
        self._store = store
        # Later features set these.
        self.receipts: ReceiptStore | None = None
        self.batches: BatchStore | None = None

    async def get_operation(self, scope: Scope, operation_id: str) -> OperationRecord:
        receipt = None if self.receipts is None else await self.receipts.get(scope, operation_id)
        return receipt or (await self._find(scope, operation_id))[1]

    async def list_operations(
        self, scope: Scope, *, state: OperationState | None, kind: OperationKind | None, offset: int, limit: int
    ) -> OperationListResponse:
        """Return a page of unfinished or dead operations.

        `offset` is 0 or a previous `next_offset`. For the state "done", return erasure receipts,
        newest first, or nothing for restricted callers.
        """
        if state is OperationState.DONE:
            return await self._list_receipts(scope, kind, offset, limit)
        kinds = [DueKind(each.value) for each in (OperationKind if kind is None else [kind]) if each.value in OUTBOX_KINDS]
        operations: list[OperationRecord] = []
        # The offset is a position among the marks of all kinds, not a number of operations.
        position = 0
        for due_kind in kinds:
            start = 0
            while True:
                marks = await self._store.list_marks(due_kind, dead=state is OperationState.DEAD, offset=start, limit=_SCAN)
                for operation in await self._store.load_operations(scope, marks):
                    position += 1
                    if position <= offset or operation is None or (state is not None and operation.state is not state):
                        continue
                    operations.append(operation)
                    if len(operations) == limit:
                        return OperationListResponse(operations=operations, next_offset=position)
                start += len(marks)
                if len(marks) < _SCAN:
                    break
        return OperationListResponse(operations=operations, next_offset=None)

    async def _list_receipts(self, scope: Scope, kind: OperationKind | None, offset: int, limit: int) -> OperationListResponse:
        if scope.limited or kind not in (None, OperationKind.DELETION):
            return OperationListResponse(operations=[], next_offset=None)
        marks = await self._store.list_receipts(scope, offset, limit + 1)
        loaded = await self._store.load_operations(scope, marks[:limit])
        operations = [each for each in loaded if each is not None and each.state is OperationState.DONE]
        return OperationListResponse(operations=operations, next_offset=offset + limit if len(marks) > limit else None)

    async def replay_operation(self, scope: Scope, operation_id: str) -> OperationRecord:
        """Retry a dead operation. Raises NotFound, or Conflict if it is not dead."""
        mark, _ = await self._find_dead(writing(scope), operation_id)
        await self._store.revive_mark(mark)
        return await self.get_operation(scope, operation_id)

    async def drop_operation(self, scope: Scope, operation_id: str) -> None:
        """Drop a dead operation, but keep its memory or session. Raises NotFound and Conflict."""
        mark, operation = await self._find_dead(writing(scope), operation_id)
        if self.batches is not None and mark.kind is DueKind.EXTRACTION and "." in mark.member:
            await self.batches.settle(mark.member.partition(".")[0], scope.tenant, operation.user_id, batch=mark.member)
        else:
            await self._store.drop_mark(mark)

    async def wait_for_marks(self, scope: Scope, marks: Sequence[Mark], seconds: float, *, untouched: float | None = None) -> bool:
        """Wait up to `seconds` for work to finish. Return True if all of it is done.

        Give up after `untouched` seconds if no worker has started.
        """
        begun = time.monotonic()
        left = list(marks)
        for pause in _looks(seconds):
            await asyncio.sleep(pause)
            states = await self._store.load_operations(scope, left)
            left = [m for m, o in zip(left, states, strict=True) if o is not None and o.state is not OperationState.DONE]
            if not left:
                return True
            idle = untouched is not None and all(o is None or o.state is OperationState.PENDING for o in states)
            if idle and time.monotonic() >= begun + (untouched or 0.0):
                return False
        return False

    async def wait_for_messages(
        self, scope: Scope, ref: SessionRef, memory_ids: Sequence[str], target: MessageStage, seconds: float
    ) -> MessageStage:
        """Wait up to `seconds` for the messages to reach a stage. Return the stage reached.

        `memory_ids` are the ids of memories made from the messages.
        """
        session = [Mark(DueKind.SESSION, self._store.sid(scope, ref))]
        memories = self.memory_marks(scope, list(dict.fromkeys(memory_ids)))
        stage: MessageStage = "stored"
        last: int | None = None
        for pause in _looks(seconds):
            await asyncio.sleep(pause)
            if stage == "stored":
                (work,) = await self._store.load_operations(scope, session)
                if work is not None and work.state is not OperationState.DONE:
                    # Messages that arrive later do not extend the wait.
                    last = work.stages["messages"] if last is None else last
                    if work.stages["promoted"] < last:
                        if work.state is OperationState.DEAD:
                            break
                        continue
                stage = "promoted"
            if target == "promoted":
                break
            states = await self._store.load_operations(scope, memories)
            memories = [m for m, o in zip(memories, states, strict=True) if o is not None and not _is_embedded(o)]
            if not memories:
                return "searchable"
            if any(o is not None and o.state is OperationState.DEAD for o in states):
                break
        return stage

    def session_marks(self, scope: Scope, ref: SessionRef) -> list[Mark]:
        sid = self._store.sid(scope, ref)
        return [Mark(DueKind.SESSION, sid), Mark(DueKind.EXTRACTION, sid)]

    async def load_states(self, scope: Scope, groups: Sequence[Sequence[Mark]]) -> list[set[OperationState]]:
        """Return the states of each group's operations, in one round trip."""
        records = iter(await self._store.load_operations(scope, [mark for marks in groups for mark in marks]))
        return [{record.state for record in islice(records, len(marks)) if record is not None} for marks in groups]

    def memory_marks(self, scope: Scope, ids: Sequence[str]) -> list[Mark]:
        return [Mark(DueKind.MEMORY, self._store.mid(scope, memory_id)) for memory_id in ids]

    def follow_marks(self, scope: Scope, ids: Sequence[str]) -> list[Mark]:
        """Return the marks for updating profiles and timelines."""
        return [Mark(DueKind.FOLLOW, self._store.mid(scope, memory_id)) for memory_id in ids]

    async def hasten_session(self, scope: Scope, ref: SessionRef) -> None:
        """Make a session's pending work due now."""
        marks = self.session_marks(writing(scope), ref)
        if scope.agents is not None:
            reached = await self._store.load_operations(scope, marks)
            marks = [mark for mark, operation in zip(marks, reached, strict=True) if operation is not None]
        await self._store.hasten_marks(marks)

    async def _find_dead(self, scope: Scope, operation_id: str) -> tuple[Mark, OperationRecord]:
        mark, operation = await self._find(scope, operation_id)
        if operation.state is not OperationState.DEAD:
            raise Conflict(f"operation {operation_id} is {operation.state.value}, not dead: only dead operations can be retried or dropped")
        return mark, operation

    async def _find(self, scope: Scope, operation_id: str) -> tuple[Mark, OperationRecord]:
        mark = parse_operation_id(operation_id)
        operation = (await self._store.load_operations(scope, [mark]))[0] if mark else None
        if mark is None or operation is None:
            raise NotFound(f"Operation {operation_id} not found", field="operation_id", hint="GET /v1/operations lists all")
        return mark, operation


def _is_embedded(memory: OperationRecord) -> bool:
    """True if the memory has a vector, even if it is due for embedding again."""
    return bool(memory.stages["embedded"])


def _looks(seconds: float) -> Generator[float]:
    """Yield increasing delays, starting at 0 and adding up to at most `seconds`."""
    until, pause = time.monotonic() + min(seconds, MAX_WAIT_SECONDS), _LOOK_SECONDS
    yield 0.0
    while (left := until - time.monotonic()) > 0:
        yield min(pause, left)
        pause = min(pause * _LOOKS_GROW, _MOST_LOOK_SECONDS)
