"""The quarantine: memories that read like an instruction to a model, until somebody has looked at them."""

from __future__ import annotations

from agent_memory_client._wire.requests import Call, query, segment
from agent_memory_client.models import AckResponse, MemoryRecord, QuarantineListResponse
from agent_memory_client.resources.base import Resource

_PATH = "/v1/quarantine"


class Quarantine(Resource):
    """Reviews quarantined memories."""

    async def list(
        self, namespace: str | None = None, user_id: str | None = None, limit: int = 20, offset: int = 0
    ) -> QuarantineListResponse:
        """A page of the memories that read like instructions to a model and wait for a review, the newest first (`limit` 1 to 100)."""
        params = query(namespace=namespace, user_id=user_id, limit=limit, offset=offset)
        return await self._read(QuarantineListResponse, Call("GET", _PATH, params))

    async def approve(self, memory_id: str) -> MemoryRecord:
        """Lets a memory be found and shown as it reads now; for administrators. Raises MemoryNotFoundError."""
        return await self._read(MemoryRecord, _review(memory_id, "approve"))

    async def reject(self, memory_id: str) -> AckResponse:
        """Deletes a memory that is in quarantine, for good. Raises MemoryNotFoundError."""
        return await self._read(AckResponse, _review(memory_id, "reject"))


def _review(memory_id: str, action: str) -> Call:
    """The end of a review. Sent once: for a second one nothing is in quarantine, which would look as if the first had failed."""
    return Call("POST", f"{_PATH}/{segment('memory_id', memory_id)}/{action}", idempotent=False)
