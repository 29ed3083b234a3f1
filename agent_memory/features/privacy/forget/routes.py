"""HTTP routes for forget requests."""

from __future__ import annotations

from typing import Annotated

from fastapi import Body, Path, Response

from agent_memory.features.memories.service import MemoryService
from agent_memory.features.privacy.forget.service import ForgetService
from agent_memory.foundation.api.dependencies import ServicesDep, WriteScopeDep
from agent_memory.foundation.api.operation import computing, deleting, operations
from agent_memory.foundation.api.responses import ModelResponse, errors
from agent_memory_client.models import ForgetMemoryRequest, ForgetMemoryResponse, ForgettingResponse, ForgetUndoResponse, Identifier

router = operations("long-term memory")


@router.post("/v1/memory/forget", operation_id="forget_memory", response_model=ForgetMemoryResponse, responses=errors(409, 413, 415))
@deleting
@computing
async def forget_memory(services: ServicesDep, scope: WriteScopeDep, body: Annotated[ForgetMemoryRequest, Body()]) -> Response:
    """Forgets data described by text or by ids.

    This deletes messages, all versions of facts and the messages behind them, and anything the
    assistant repeated.

    Everything is deleted atomically. Use the receipt to restore the data until `undo_until`. If no
    match is certain, or if different things match, nothing is deleted: the response is `ambiguous`
    and lists the matches. To delete the right ones, send their ids in `ids`.
    """
    services[MemoryService].require()
    return ModelResponse(await services[ForgetService].forget(scope, body))


@router.get("/v1/memory/forget/{receipt_id}", operation_id="get_forgotten", response_model=ForgettingResponse, responses=errors(404))
async def get_forgotten(
    services: ServicesDep, scope: WriteScopeDep, receipt_id: Annotated[Identifier, Path(description="The forget request's receipt id.")]
) -> Response:
    """Returns the data that a forget request deleted, until `undo_until`.

    After an undo, returns the restored data that is still stored. Requires the `write` role, like
    the undo.
    """
    return ModelResponse(await services[ForgetService].show(scope, receipt_id))


@router.post(
    "/v1/memory/forget/{receipt_id}/undo", operation_id="undo_forget_memory", response_model=ForgetUndoResponse, responses=errors(404, 409)
)
async def undo_forget_memory(
    services: ServicesDep, scope: WriteScopeDep, receipt_id: Annotated[Identifier, Path(description="The forget request's receipt id.")]
) -> Response:
    """Restores forgotten memories and messages unless newer data has replaced them. Idempotent."""
    return ModelResponse(await services[ForgetService].undo(scope, receipt_id))
