"""HTTP operations for memory blocks."""

from __future__ import annotations

from typing import Annotated

from fastapi import Body, Path, Query, Response

from agent_memory.extensions.blocks.owners import named_owner
from agent_memory.extensions.blocks.service import BlockService
from agent_memory.foundation.api.dependencies import (
    AgentOwnerQuery,
    IfMatch,
    IfNoneMatch,
    ScopeDep,
    ServicesDep,
    WriteScopeDep,
    required_version,
    version_of,
)
from agent_memory.foundation.api.operation import operations
from agent_memory.foundation.api.principals import permit_agent, place_of
from agent_memory.foundation.api.responses import ModelResponse, errors, etag, versioned
from agent_memory.foundation.core.prompt_sections import Reader
from agent_memory_client.models import AckResponse
from agent_memory_client.models.features import blocks as wire

router = operations("memory blocks")

LabelPath = Annotated[wire.BlockLabel, Path(description="The block's label, without `/`.")]


@router.get("/v1/blocks", operation_id="list_blocks", response_model=wire.BlockListResponse, responses=errors(400))
async def list_blocks(
    services: ServicesDep,
    scope: ScopeDep,
    names: AgentOwnerQuery,
    shown: Annotated[bool, Query(description="Return all blocks shown in this owner's prompts, not only the owner's own blocks.")] = False,
) -> Response:
    """Returns the blocks of exactly this owner, or all blocks shown in the owner's prompts."""
    owner = named_owner(names)
    service = services[BlockService]
    if not shown:
        return ModelResponse(await service.list_blocks(scope, owner))
    permit_agent(scope, names.agent_id)
    return ModelResponse(await service.list_shown(scope, Reader(*place_of(scope, names.namespace, names.user_id), names.agent_id)))


@router.get("/v1/blocks/{label}", operation_id="get_block", response_model=wire.Block, responses=versioned(400, 404))
async def get_block(services: ServicesDep, scope: ScopeDep, label: LabelPath, names: AgentOwnerQuery) -> Response:
    """Returns a block. The owner must match exactly."""
    block = await services[BlockService].get(scope, named_owner(names), label)
    return ModelResponse(block, etag(block.version))


@router.put("/v1/blocks/{label}", operation_id="put_block", response_model=wire.BlockEdit, responses=versioned(400, 409, 412, 413, 415))
async def put_block(
    services: ServicesDep,
    scope: WriteScopeDep,
    label: LabelPath,
    body: Annotated[wire.PutBlockRequest, Body()],
    names: AgentOwnerQuery,
    if_match: IfMatch = None,
    if_none_match: IfNoneMatch = None,
) -> Response:
    """Creates a block for the given owner, or updates the given fields of an existing block."""
    edit = await services[BlockService].put(scope, named_owner(names), label, body, required_version(if_match, if_none_match))
    return ModelResponse(edit, etag(edit.block.version))


@router.patch(
    "/v1/blocks/{label}", operation_id="edit_block", response_model=wire.BlockEdit, responses=versioned(400, 404, 409, 412, 413, 415)
)
async def edit_block(
    services: ServicesDep,
    scope: WriteScopeDep,
    label: LabelPath,
    body: Annotated[wire.EditBlockRequest, Body()],
    names: AgentOwnerQuery,
    if_match: IfMatch = None,
) -> Response:
    """Edits a block's text atomically and returns the change.

    If the block is full, returns 409 with the block's size and limit, and suggests text to delete.
    """
    edit = await services[BlockService].edit(scope, named_owner(names), label, body, version_of(if_match))
    return ModelResponse(edit, etag(edit.block.version))


@router.delete("/v1/blocks/{label}", operation_id="delete_block", response_model=AckResponse, responses=errors(400, 412))
async def delete_block(
    services: ServicesDep, scope: WriteScopeDep, label: LabelPath, names: AgentOwnerQuery, if_match: IfMatch = None
) -> Response:
    """Deletes a block, its history and its attachments. A missing block is not an error."""
    return ModelResponse(await services[BlockService].delete(scope, named_owner(names), label, version_of(if_match)))


@router.get(
    "/v1/blocks/{label}/history", operation_id="get_block_history", response_model=wire.BlockHistoryResponse, responses=errors(400, 404)
)
async def get_block_history(services: ServicesDep, scope: ScopeDep, label: LabelPath, names: AgentOwnerQuery) -> Response:
    """Returns the changes to a block, oldest first. Applied in order, they produce the block's text."""
    return ModelResponse(await services[BlockService].history(scope, named_owner(names), label))


@router.post(
    "/v1/blocks/{label}/undo", operation_id="undo_block", response_model=wire.BlockEdit, responses=versioned(400, 404, 409, 412, 413, 415)
)
async def undo_block(
    services: ServicesDep,
    scope: WriteScopeDep,
    label: LabelPath,
    body: Annotated[wire.UndoBlockRequest, Body()],
    names: AgentOwnerQuery,
    if_match: IfMatch = None,
) -> Response:
    """Undoes the change that created the given version, or by default the latest change.

    An undo is itself a change, so you can undo it too.
    """
    edit = await services[BlockService].undo(scope, named_owner(names), label, body.version, version_of(if_match))
    return ModelResponse(edit, etag(edit.block.version))


@router.post("/v1/blocks/{label}/attach", operation_id="attach_block", response_model=wire.Block, responses=errors(400, 404, 409, 413, 415))
async def attach_block(
    services: ServicesDep, scope: WriteScopeDep, label: LabelPath, body: Annotated[wire.BlockAttachRequest, Body()], names: AgentOwnerQuery
) -> Response:
    """Attaches a block to another owner, such as a second agent.

    The other owner's prompts then show the block too.
    """
    owner, target = named_owner(names), named_owner(body)
    return ModelResponse(await services[BlockService].attach(scope, owner, label, target, attach=True))


@router.post("/v1/blocks/{label}/detach", operation_id="detach_block", response_model=wire.Block, responses=errors(400, 404, 409, 413, 415))
async def detach_block(
    services: ServicesDep, scope: WriteScopeDep, label: LabelPath, body: Annotated[wire.BlockAttachRequest, Body()], names: AgentOwnerQuery
) -> Response:
    """Detaches a block from another owner, whose prompts then no longer show it."""
    owner, target = named_owner(names), named_owner(body)
    return ModelResponse(await services[BlockService].attach(scope, owner, label, target, attach=False))
