"""Track, retry or delete background jobs."""

from __future__ import annotations

from agent_memory_client._wire.requests import Call, idempotency_headers, query, segment
from agent_memory_client.models import AckResponse, OperationKind, OperationListResponse, OperationRecord, OperationState, Task
from agent_memory_client.resources.base import Resource

_PATH = "/v1/operations"


class Jobs(Resource):
    """List background jobs, and retry or delete jobs that failed permanently."""

    async def list(
        self, state: OperationState | str | None = None, kind: OperationKind | str | None = None, limit: int = 20, offset: int = 0
    ) -> OperationListResponse:
        """Return a page of unfinished jobs (`limit` 1 to 100). Use state "dead" for failed jobs.

        For the next page, pass the previous page's `next_offset` as `offset`.
        """
        return await self._read(OperationListResponse, Call("GET", _PATH, query(state=state, kind=kind, limit=limit, offset=offset)))

    async def get(self, operation_id: str) -> OperationRecord:
        """Return a background job. Raises MemoryNotFoundError."""
        return await self._read(OperationRecord, Call("GET", _job_path(operation_id)))

    async def replay(self, operation_id: str) -> OperationRecord:
        """Retry a job that failed permanently.

        Raises MemoryNotFoundError, or MemoryConflictError if the job is in any other state.
        """
        return await self._read(OperationRecord, Call("POST", f"{_job_path(operation_id)}/replay", headers=idempotency_headers()))

    async def drop(self, operation_id: str) -> AckResponse:
        """Delete a job that failed permanently.

        Raises MemoryNotFoundError, or MemoryConflictError if the job is in any other state.
        """
        # Sent only once: the server would reject a second request, as if the first had failed.
        return await self._read(AckResponse, Call("DELETE", _job_path(operation_id), idempotent=False))

    async def get_task(self, task_id: str) -> Task:
        """Return a task started by `views.run`. Raises MemoryNotFoundError."""
        return await self._read(Task, Call("GET", f"/v1/tasks/{segment('task_id', task_id)}"))


def _job_path(operation_id: str) -> str:
    return f"{_PATH}/{segment('operation_id', operation_id)}"
