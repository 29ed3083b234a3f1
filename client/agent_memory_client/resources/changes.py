"""Changes to memories: updates, merges, supersessions, and proposals awaiting approval."""

from __future__ import annotations

from agent_memory_client._wire.requests import Call, idempotency_headers, query, segment
from agent_memory_client.models import Change, ChangeKindEnum, ChangeListResponse, ChangeStateEnum
from agent_memory_client.resources.base import Resource

_PATH = "/v1/changes"


class Changes(Resource):
    """List recorded changes, undo them, and approve or reject proposals."""

    async def list(
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
        """Return a page of changes, newest first. Use state "proposed" for pending changes."""
        params = query(
            memory_id=memory_id, kind=kind, state=state, batch_id=batch_id, namespace=namespace, user_id=user_id, limit=limit, offset=offset
        )
        return await self._read(ChangeListResponse, Call("GET", _PATH, params))

    async def get(self, change_id: str) -> Change:
        """Return a change with the memories before and after it. Raises MemoryNotFoundError."""
        return await self._read(Change, Call("GET", f"{_PATH}/{segment('change_id', change_id)}"))

    async def undo(self, change_id: str) -> Change:
        """Undo a change. Raises MemoryNotFoundError or MemoryConflictError."""
        return await self._end(change_id, "undo")

    async def approve(self, change_id: str) -> Change:
        """Apply a proposal. Raises MemoryNotFoundError or MemoryConflictError."""
        return await self._end(change_id, "approve")

    async def reject(self, change_id: str) -> Change:
        """Reject a proposal. Raises MemoryNotFoundError or MemoryConflictError."""
        return await self._end(change_id, "reject")

    async def undo_batch(self, batch_id: str) -> ChangeListResponse:
        """Undo all applied changes in a batch, newest first.

        Raises MemoryNotFoundError or MemoryConflictError.
        """
        path = f"{_PATH}/batches/{segment('change_id', batch_id)}/undo"
        return await self._read(ChangeListResponse, Call("POST", path, headers=idempotency_headers()))

    async def _end(self, change_id: str, action: str) -> Change:
        path = f"{_PATH}/{segment('change_id', change_id)}/{action}"
        return await self._read(Change, Call("POST", path, headers=idempotency_headers()))
