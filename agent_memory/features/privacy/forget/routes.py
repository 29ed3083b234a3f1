"""Forgetting by request, and undoing it."""

from __future__ import annotations

from typing import Annotated

from fastapi import Body, Path, Response

from agent_memory.features.memories.service import MemoryService
from agent_memory.features.privacy.forget.service import ForgetService
from agent_memory.foundation.api.dependencies import ServicesDep, WriteScopeDep
from agent_memory.foundation.api.operation import computing, deleting, operations
from agent_memory.foundation.api.responses import ModelResponse, errors
from agent_memory_client.models import ForgetMemoryRequest, ForgetMemoryResponse, ForgetUndoResponse, Identifier

router = operations("long-term memory")


@router.post("/v1/memory/forget", operation_id="forget_memory", response_model=ForgetMemoryResponse, responses=errors(409, 413, 415))
@deleting
@computing
async def forget_memory(services: ServicesDep, scope: WriteScopeDep, body: Annotated[ForgetMemoryRequest, Body()]) -> Response:
    """Forgets what is named, in words or by ids: messages, facts in all versions with their messages, and what the assistant repeats.

    All of it goes at once, with a receipt by which it comes back until `undo_until`. When nothing surely is meant, or several different
    things could be, nothing goes: the answer is `ambiguous` and lists them, and `ids` say which.
    """
    services[MemoryService].require()
    return ModelResponse(await services[ForgetService].forget(scope, body))


@router.post(
    "/v1/memory/forget/{receipt_id}/undo", operation_id="undo_forget_memory", response_model=ForgetUndoResponse, responses=errors(404, 409)
)
async def undo_forget_memory(
    services: ServicesDep, scope: WriteScopeDep, receipt_id: Annotated[Identifier, Path(description="The receipt of what was forgotten.")]
) -> Response:
    """Brings back what was forgotten, where nothing newer stands in its place. A second time changes nothing."""
    return ModelResponse(await services[ForgetService].undo(scope, receipt_id))
