"""Routes to review quarantined memories: memories that read like instructions to a model."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Response

from agent_memory.features.memories.quarantine.service import QuarantineService
from agent_memory.foundation.api.dependencies import (
    AdminScopeDep,
    MemoryPath,
    NamespaceQuery,
    ScopeDep,
    ServicesDep,
    UserQuery,
    WriteScopeDep,
)
from agent_memory.foundation.api.operation import operations
from agent_memory.foundation.api.responses import ModelResponse, errors
from agent_memory_client.models import AckResponse, MemoryRecord, QuarantineListResponse

router = operations("quarantine")


@router.get("/v1/quarantine", operation_id="list_quarantine", response_model=QuarantineListResponse, responses=errors())
async def list_quarantine(
    services: ServicesDep,
    scope: ScopeDep,
    user_id: UserQuery = None,
    namespace: NamespaceQuery = None,
    limit: Annotated[int, Query(ge=1, le=100, description="At most so many memories.")] = 20,
    offset: Annotated[int, Query(ge=0, le=1_000_000, description="The `next_offset` of the page before.")] = 0,
) -> Response:
    """Lists memories that await review, newest first; `quarantine` gives the reason."""
    return ModelResponse(await services[QuarantineService].list_quarantined(scope, namespace, user_id, offset, limit))


@router.post(
    "/v1/quarantine/{memory_id:path}/approve",
    operation_id="approve_quarantined",
    response_model=MemoryRecord,
    responses=errors(404, 409),
)
async def approve_quarantined(services: ServicesDep, scope: AdminScopeDep, memory_id: MemoryPath) -> Response:
    """Releases a memory with its current text from quarantine, so that searches find it.

    For administrators only: writers must not approve their own text.
    """
    return ModelResponse(await services[QuarantineService].approve_memory(scope, memory_id))


@router.post(
    "/v1/quarantine/{memory_id:path}/reject",
    operation_id="reject_quarantined",
    response_model=AckResponse,
    responses=errors(404, 409),
)
async def reject_quarantined(services: ServicesDep, scope: WriteScopeDep, memory_id: MemoryPath) -> Response:
    """Permanently deletes a quarantined memory."""
    return ModelResponse(await services[QuarantineService].reject_memory(scope, memory_id))
