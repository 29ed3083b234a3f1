"""Summary views: summaries of memories, grouped by the fields in the view."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from pydantic import TypeAdapter

from agent_memory_client._wire.answers import parse_list
from agent_memory_client._wire.requests import Call, as_body, idempotency_headers, query, segment
from agent_memory_client.models import AckResponse, CreateSummaryViewRequest, SummaryView, SummaryViewPartitionResult, Task, new_id
from agent_memory_client.resources.base import Resource

_PATH = "/v1/summary-views"

SummaryViewList: TypeAlias = list[SummaryView]
PartitionList: TypeAlias = list[SummaryViewPartitionResult]
_VIEWS = TypeAdapter(SummaryViewList)
_PARTITIONS = TypeAdapter(PartitionList)


class Views(Resource):
    """Create and run summary views, and read their summaries."""

    async def list(self) -> SummaryViewList:
        """Return the definitions of all summary views."""
        return parse_list(_VIEWS, "summary views", await self._send(Call("GET", _PATH)))

    async def create(self, request: CreateSummaryViewRequest | Mapping[str, Any]) -> SummaryView:
        """Create a summary view. The server assigns its id."""
        return await self._read(SummaryView, Call("POST", _PATH, json=as_body(request), headers=idempotency_headers()))

    async def get(self, view_id: str) -> SummaryView:
        """Return a summary view. Raises MemoryNotFoundError."""
        return await self._read(SummaryView, Call("GET", _view_path(view_id)))

    async def delete(self, view_id: str) -> AckResponse:
        """Delete a summary view, if it exists."""
        return await self._read(AckResponse, Call("DELETE", _view_path(view_id)))

    async def run(self, view_id: str, force: bool = False) -> Task:
        """Start computing all partitions in the background. Raises MemoryNotFoundError."""
        # The client generates the task's id, so that a retry asks for the same task.
        body: dict[str, Any] = {"task_id": new_id(), **({"force": True} if force else {})}
        return await self._read(Task, Call("POST", f"{_view_path(view_id)}/run", json=body, headers=idempotency_headers()))

    async def run_partition(self, view_id: str, group: dict[str, str]) -> SummaryViewPartitionResult:
        """Compute and store a partition's summary. `group` needs a value for every grouping field.

        Raises MemoryNotFoundError.
        """
        path = f"{_view_path(view_id)}/partitions/run"
        return await self._read(SummaryViewPartitionResult, Call("POST", path, json={"group": dict(group)}, headers=idempotency_headers()))

    async def list_partitions(
        self,
        view_id: str,
        namespace: str | None = None,
        user_id: str | None = None,
        session_id: str | None = None,
        memory_type: str | None = None,
    ) -> PartitionList:
        """Return the stored summaries of a view's partitions. Raises MemoryNotFoundError."""
        params = query(namespace=namespace, user_id=user_id, session_id=session_id, memory_type=memory_type)
        return parse_list(_PARTITIONS, "partitions", await self._send(Call("GET", f"{_view_path(view_id)}/partitions", params)))


def _view_path(view_id: str) -> str:
    return f"{_PATH}/{segment('view_id', view_id)}"
