"""Review quarantined memories, whose text looks like instructions to a model."""

from __future__ import annotations

from agent_memory_client._wire.requests import Call, query, segment
from agent_memory_client.models import AckResponse, MemoryRecord, QuarantineListResponse
from agent_memory_client.resources.base import Resource

_PATH = "/v1/quarantine"


class Quarantine(Resource):
    """Review quarantined memories."""

    async def list(
        self, namespace: str | None = None, user_id: str | None = None, limit: int = 20, offset: int = 0
    ) -> QuarantineListResponse:
        """Return a page of memories awaiting review, newest first (`limit` 1 to 100)."""
        params = query(namespace=namespace, user_id=user_id, limit=limit, offset=offset)
        return await self._read(QuarantineListResponse, Call("GET", _PATH, params))

    async def approve(self, memory_id: str) -> MemoryRecord:
        """Release a quarantined memory with its current text. Requires an administrator.

        Raises MemoryNotFoundError.
        """
        return await self._read(MemoryRecord, _review(memory_id, "approve"))

    async def reject(self, memory_id: str) -> AckResponse:
        """Delete a quarantined memory. Raises MemoryNotFoundError."""
        return await self._read(AckResponse, _review(memory_id, "reject"))


def _review(memory_id: str, action: str) -> Call:
    """Build the call that approves or rejects a memory. The call must not be repeated."""
    return Call("POST", f"{_PATH}/{segment('memory_id', memory_id)}/{action}", idempotent=False)
