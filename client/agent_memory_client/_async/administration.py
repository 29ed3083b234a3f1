"""One method per call of the REST API beyond the conversation: forgetting, summary views, tasks and background operations."""

from __future__ import annotations

from pydantic import TypeAdapter

from agent_memory_client._answers import Acknowledgement, acknowledged, parse, parse_list
from agent_memory_client._async.connection import Connection
from agent_memory_client._calls import Wait
from agent_memory_client.models import (
    AckResponse,
    Change,
    ChangeKindEnum,
    ChangeListResponse,
    ChangeStateEnum,
    CreateSummaryViewRequest,
    ExtractionRules,
    ForgetPolicy,
    ForgetResponse,
    MemoryEvidence,
    MemoryHistory,
    OperationKind,
    OperationListResponse,
    OperationRecord,
    OperationState,
    SummaryView,
    SummaryViewPartitionResult,
    Task,
)

_VIEWS = TypeAdapter(list[SummaryView])
_PARTITIONS = TypeAdapter(list[SummaryViewPartitionResult])


class Administration(Connection):
    """Single calls: forgetting, summary views, tasks and background operations."""

    async def forget_long_term_memories(
        self,
        policy: ForgetPolicy,
        namespace: str | None = None,
        user_id: str | None = None,
        session_id: str | None = None,
        limit: int | None = None,
        dry_run: bool = False,
        pinned_ids: list[str] | None = None,
    ) -> ForgetResponse:
        """Deletes what `policy` lets go, or with `dry_run` only says what that would be."""
        call = self._calls.forget(policy, namespace, user_id, session_id, limit, dry_run, pinned_ids)
        return parse(ForgetResponse, await self._send(call))

    async def compact_long_term_memories(self, namespace: str | None = None, user_id: str | None = None) -> Acknowledgement:
        """Merges memories that say the same; the status tells how many remain. After 20 seconds it answers, `pending`, and goes on."""
        return acknowledged(await self._send(self._calls.compact(namespace, user_id)))

    async def delete_user(self, user_id: str, namespace: str | None = None, wait: Wait = None) -> Acknowledgement:
        """Deletes all sessions and memories of a user, in `namespace` or (None, whatever the client's default) in all of them.

        With `wait` (seconds, or True for up to 10) it answers when that is done, or `pending` when it takes longer; the answer's
        `operation_id` names the work.
        """
        return acknowledged(await self._send(self._calls.delete_user(user_id, namespace, wait)))

    async def get_extraction_rules(self, namespace: str | None = None, user_id: str | None = None) -> ExtractionRules:
        """The rules for taking facts of exactly this namespace and user (both None: everybody's); empty when there are none."""
        return parse(ExtractionRules, await self._send(self._calls.rules("GET", namespace, user_id)))

    async def put_extraction_rules(
        self, rules: ExtractionRules, namespace: str | None = None, user_id: str | None = None
    ) -> ExtractionRules:
        """Replaces these rules. Those of a session are in its `long_term_memory_strategy.config`."""
        return parse(ExtractionRules, await self._send(self._calls.rules("PUT", namespace, user_id, rules)))

    async def delete_extraction_rules(self, namespace: str | None = None, user_id: str | None = None) -> AckResponse:
        """Forgets these rules; none there is no error."""
        return parse(AckResponse, await self._send(self._calls.rules("DELETE", namespace, user_id)))

    async def list_summary_views(self) -> list[SummaryView]:
        """All summary views."""
        return parse_list(_VIEWS, "summary views", await self._send(self._calls.list_views()))

    async def create_summary_view(self, request: CreateSummaryViewRequest) -> SummaryView:
        """Makes a summary view; the server gives it an id."""
        return parse(SummaryView, await self._send(self._calls.create_view(request)))

    async def get_summary_view(self, view_id: str) -> SummaryView | None:
        """A summary view, or None when there is none of that id."""
        response = await self._send_or_none(self._calls.get_view(view_id))
        return None if response is None else parse(SummaryView, response)

    async def delete_summary_view(self, view_id: str) -> AckResponse:
        """Deletes a summary view; one that does not exist is no error."""
        return parse(AckResponse, await self._send(self._calls.delete_view(view_id)))

    async def run_summary_view_partition(self, view_id: str, group: dict[str, str]) -> SummaryViewPartitionResult:
        """Computes and stores the summary of one partition: `group` has a value for every field that the view groups by."""
        return parse(SummaryViewPartitionResult, await self._send(self._calls.run_partition(view_id, group)))

    async def list_summary_view_partitions(
        self,
        view_id: str,
        namespace: str | None = None,
        user_id: str | None = None,
        session_id: str | None = None,
        memory_type: str | None = None,
    ) -> list[SummaryViewPartitionResult]:
        """The stored summaries of a view's partitions; computes nothing."""
        call = self._calls.list_partitions(view_id, namespace, user_id, session_id, memory_type)
        return parse_list(_PARTITIONS, "partitions", await self._send(call))

    async def run_summary_view(self, view_id: str, force: bool = False) -> Task:
        """Starts the computation of all partitions in the background."""
        return parse(Task, await self._send(self._calls.run_view(view_id, force)))

    async def get_task(self, task_id: str) -> Task | None:
        """A background task, or None when there is none of that id."""
        response = await self._send_or_none(self._calls.get_task(task_id))
        return None if response is None else parse(Task, response)

    async def list_operations(
        self, state: OperationState | str | None = None, kind: OperationKind | str | None = None, limit: int = 20, offset: int = 0
    ) -> OperationListResponse:
        """A page of the background work that is not done (`limit` 1 to 100); with state "dead" what was given up.

        `offset` is the `next_offset` of the page before.
        """
        return parse(OperationListResponse, await self._send(self._calls.list_operations(state, kind, limit, offset)))

    async def get_operation(self, operation_id: str) -> OperationRecord:
        """One piece of background work. Raises MemoryNotFoundError."""
        return parse(OperationRecord, await self._send(self._calls.get_operation(operation_id)))

    async def replay_operation(self, operation_id: str) -> OperationRecord:
        """Lets the server try again what it had given up. Raises MemoryNotFoundError, MemoryConflictError when it is not dead."""
        return parse(OperationRecord, await self._send(self._calls.replay_operation(operation_id)))

    async def drop_operation(self, operation_id: str) -> AckResponse:
        """Forgets work that was given up. Raises MemoryNotFoundError, MemoryConflictError when it is not dead."""
        return parse(AckResponse, await self._send(self._calls.drop_operation(operation_id)))

    async def get_memory_evidence(self, memory_id: str) -> MemoryEvidence:
        """What a memory rests on, with the messages that still exist. Raises MemoryNotFoundError."""
        return parse(MemoryEvidence, await self._send(self._calls.memory_part(memory_id, "evidence")))

    async def get_memory_history(self, memory_id: str) -> MemoryHistory:
        """All versions of a memory, the newest first, and its changes. Raises MemoryNotFoundError."""
        return parse(MemoryHistory, await self._send(self._calls.memory_part(memory_id, "history")))

    async def list_changes(
        self,
        memory_id: str | None = None,
        *,
        kind: ChangeKindEnum | str | None = None,
        state: ChangeStateEnum | str | None = None,
        batch_id: str | None = None,
        namespace: str | None = None,
        user_id: str | None = None,
        limit: int = 20,
        offset: int = 0,
    ) -> ChangeListResponse:
        """A page of recorded changes, the newest first; with state "proposed" those that wait for `approve_change`."""
        call = self._calls.list_changes(
            memory_id=memory_id,
            kind=kind,
            state=state,
            batch_id=batch_id,
            namespace=namespace,
            user_id=user_id,
            limit=limit,
            offset=offset,
        )
        return parse(ChangeListResponse, await self._send(call))

    async def get_change(self, change_id: str) -> Change:
        """One change, with what was before and after. Raises MemoryNotFoundError."""
        return parse(Change, await self._send(self._calls.get_change(change_id)))

    async def undo_change(self, change_id: str) -> Change:
        """Brings back what was before a change. Raises MemoryNotFoundError, MemoryConflictError."""
        return parse(Change, await self._send(self._calls.end_change(change_id, "undo")))

    async def approve_change(self, change_id: str) -> Change:
        """Carries a proposal out. Raises MemoryNotFoundError, MemoryConflictError."""
        return parse(Change, await self._send(self._calls.end_change(change_id, "approve")))

    async def reject_change(self, change_id: str) -> Change:
        """Ends a proposal. Raises MemoryNotFoundError, MemoryConflictError."""
        return parse(Change, await self._send(self._calls.end_change(change_id, "reject")))

    async def undo_change_batch(self, batch_id: str) -> ChangeListResponse:
        """Undoes all applied changes of a batch, the last one first. Raises MemoryNotFoundError, MemoryConflictError."""
        return parse(ChangeListResponse, await self._send(self._calls.end_change(batch_id, "undo", "batches/")))
