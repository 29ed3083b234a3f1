"""Routes to read a memory's versions, evidence and changes, and to undo changes."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query, Response

from agent_memory.features.memories.changes.service import HistoryService
from agent_memory.foundation.api.dependencies import MemoryPath, NamespaceQuery, ScopeDep, ServicesDep, UserQuery, WriteScopeDep
from agent_memory.foundation.api.operation import operations
from agent_memory.foundation.api.responses import ModelResponse, errors
from agent_memory_client.models import (
    Change,
    ChangeKindEnum,
    ChangeListResponse,
    ChangeStateEnum,
    Identifier,
    MemoryEvidence,
    MemoryHistory,
)

router = operations("long-term memory")

ChangePath = Annotated[Identifier, Path(description="The change's id, as the list of changes gives it.")]
BatchPath = Annotated[Identifier, Path(description="The `batch_id` of the changes.")]


@router.get(
    "/v1/long-term-memory/{memory_id:path}/evidence",
    operation_id="get_memory_evidence",
    response_model=MemoryEvidence,
    responses=errors(404),
)
async def get_evidence(services: ServicesDep, scope: ScopeDep, memory_id: MemoryPath) -> Response:
    """Returns a memory's evidence, with the cited messages that still exist."""
    return ModelResponse(await services[HistoryService].read_evidence(scope, memory_id))


@router.get(
    "/v1/long-term-memory/{memory_id:path}/history",
    operation_id="get_memory_history",
    response_model=MemoryHistory,
    responses=errors(404),
)
async def get_history(services: ServicesDep, scope: ScopeDep, memory_id: MemoryPath) -> Response:
    """Returns all versions of a memory, newest first, and the changes that affected it."""
    return ModelResponse(await services[HistoryService].read_history(scope, memory_id))


@router.get("/v1/changes", operation_id="list_changes", response_model=ChangeListResponse, responses=errors(400))
async def list_changes(
    services: ServicesDep,
    scope: ScopeDep,
    memory_id: Annotated[Identifier | None, Query(description="Only changes of this memory; the other filters do not count then.")] = None,
    kind: Annotated[ChangeKindEnum | None, Query(description="Only changes of this kind.")] = None,
    state: Annotated[ChangeStateEnum | None, Query(description="Only changes in this state; `proposed` lists the open ones.")] = None,
    batch_id: Annotated[Identifier | None, Query(description="Only changes of this batch.")] = None,
    namespace: NamespaceQuery = None,
    user_id: UserQuery = None,
    limit: Annotated[int, Query(ge=1, le=100, description="At most so many changes.")] = 20,
    offset: Annotated[int, Query(ge=0, le=1_000_000, description="The `next_offset` of the page before.")] = 0,
) -> Response:
    """Returns a page of recorded changes, newest first."""
    filters = {"kd": kind, "st": state, "bt": batch_id, "ns": namespace, "u": user_id}
    values = {name: str(value) for name, value in filters.items() if value is not None}
    return ModelResponse(await services[HistoryService].read_changes(scope, values, memory_id, offset, limit))


@router.get("/v1/changes/{change_id}", operation_id="get_change", response_model=Change, responses=errors(404))
async def get_change(services: ServicesDep, scope: ScopeDep, change_id: ChangePath) -> Response:
    """Returns a change, with each memory before and after it."""
    return ModelResponse(await services[HistoryService].read_change(scope, change_id))


@router.post("/v1/changes/{change_id}/undo", operation_id="undo_change", response_model=Change, responses=errors(404, 409))
async def undo_change(services: ServicesDep, scope: WriteScopeDep, change_id: ChangePath) -> Response:
    """Undoes a change and returns the new change that records the undo. You can undo that change, too."""
    return ModelResponse(await services[HistoryService].undo_by_id(scope, change_id))


@router.post("/v1/changes/{change_id}/approve", operation_id="approve_change", response_model=Change, responses=errors(404, 409))
async def approve_change(services: ServicesDep, scope: WriteScopeDep, change_id: ChangePath) -> Response:
    """Carries out a proposal."""
    return ModelResponse(await services[HistoryService].approve_proposal(scope, change_id))


@router.post("/v1/changes/{change_id}/reject", operation_id="reject_change", response_model=Change, responses=errors(404, 409))
async def reject_change(services: ServicesDep, scope: WriteScopeDep, change_id: ChangePath) -> Response:
    """Rejects a proposal; no memory changes."""
    return ModelResponse(await services[HistoryService].reject_proposal(scope, change_id))


@router.post(
    "/v1/changes/batches/{batch_id}/undo", operation_id="undo_batch", response_model=ChangeListResponse, responses=errors(404, 409)
)
async def undo_batch(services: ServicesDep, scope: WriteScopeDep, batch_id: BatchPath) -> Response:
    """Undoes all applied changes of a batch, the last one first."""
    return ModelResponse(await services[HistoryService].undo_batch(scope, batch_id))
