"""MCP tools that let an agent edit its own memory blocks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import AliasChoices, BaseModel, Field

from agent_memory.extensions.blocks.service import BlockService
from agent_memory.foundation.api.principals import permit_agent, place_of
from agent_memory.foundation.core.feature import Services
from agent_memory.foundation.core.mcp_tools import Caller, ToolSet, read_values
from agent_memory.foundation.core.prompt_sections import Reader
from agent_memory_client.models import AckResponse, OptionalIdentifier
from agent_memory_client.models.features.blocks import MAX_BLOCK_CHARS, BlockEdit, BlockLabel, BlockText, EditBlockRequest

TOOLS = ToolSet()


class _OwnerArguments(BaseModel):
    """A block's label, and an owner whose prompts show the block."""

    label: BlockLabel = Field(description="The block's label, as the prompt shows it.", validation_alias=AliasChoices("label", "section"))
    agent_id: OptionalIdentifier = Field(None, description="The agent that owns the prompt.")
    user_id: OptionalIdentifier = Field(None, description="The user that owns the prompt.")
    namespace: OptionalIdentifier = Field(None, description="The namespace of the prompt.")


class AppendToBlock(_OwnerArguments):
    """Arguments of core_memory_append."""

    content: BlockText = Field(description="The line to add at the end.")


class ReplaceInBlock(_OwnerArguments):
    """Arguments of core_memory_replace."""

    old_content: BlockText = Field(description="The exact text to replace. It must occur once in the block.")
    new_content: BlockText = Field(description="The replacement; an empty text removes the old one.")


class InsertIntoBlock(_OwnerArguments):
    """Arguments of memory_insert."""

    new_str: BlockText = Field(description="The text to insert, without line numbers.")
    insert_line: Annotated[int, Field(ge=-1, le=MAX_BLOCK_CHARS)] = Field(
        -1, description="The line after which to insert the text: 0 for the beginning, -1 for the end."
    )


class ReplaceString(_OwnerArguments):
    """Arguments of memory_replace."""

    old_str: BlockText = Field(description="The exact text to replace. It must occur once in the block.")
    new_str: BlockText = Field("", description="The replacement; an empty text removes the old one.")


class RethinkBlock(_OwnerArguments):
    """Arguments of memory_rethink."""

    new_memory: BlockText = Field(description="The whole new text: whatever is still true in the old text, and the new information.")


class FinishEdits(BaseModel):
    """Arguments of memory_finish_edits, which has no parameters."""


@TOOLS.tool(AppendToBlock, BlockEdit, writes=True, offered="agent")
async def core_memory_append(services: Services, caller: Caller, arguments: AppendToBlock) -> BaseModel:
    """Adds a line to a memory block, which is part of every prompt.

    Use it when you learn something that you must always keep in mind, such as the user's name. If the call fails
    because the block is full, remove something first.
    """
    values = {"operation": "append", "content": arguments.content}
    return await _edit(services, caller, arguments, values)


@TOOLS.tool(ReplaceInBlock, BlockEdit, writes=True, destroys=True, offered="agent")
async def core_memory_replace(services: Services, caller: Caller, arguments: ReplaceInBlock) -> BaseModel:
    """Replaces or removes text in a memory block, to correct it or to make room.

    `old_content` must be the exact text. If the text is not found, the error shows the most similar line.
    """
    values = {"operation": "replace", "content": arguments.new_content, "old_content": arguments.old_content}
    return await _edit(services, caller, arguments, values)


@TOOLS.tool(InsertIntoBlock, BlockEdit, writes=True, offered="agent")
async def memory_insert(services: Services, caller: Caller, arguments: InsertIntoBlock) -> BaseModel:
    """Inserts text into a memory block, after a line or at the end of the block."""
    values: dict[str, object] = {"operation": "append", "content": arguments.new_str}
    if arguments.insert_line >= 0:
        values |= {"operation": "insert", "line": arguments.insert_line + 1}
    return await _edit(services, caller, arguments, values)


@TOOLS.tool(ReplaceString, BlockEdit, writes=True, destroys=True, offered="agent")
async def memory_replace(services: Services, caller: Caller, arguments: ReplaceString) -> BaseModel:
    """Replaces an exact piece of text in a memory block, for precise edits.

    If the text is missing, the error shows the line most similar to `old_str`.
    """
    values = {"operation": "replace", "content": arguments.new_str, "old_content": arguments.old_str}
    return await _edit(services, caller, arguments, values)


@TOOLS.tool(RethinkBlock, BlockEdit, writes=True, destroys=True, offered="agent")
async def memory_rethink(services: Services, caller: Caller, arguments: RethinkBlock) -> BaseModel:
    """Rewrites a memory block, to condense or reorganize it. For small changes use memory_insert and memory_replace."""
    values = {"operation": "rethink", "content": arguments.new_memory}
    return await _edit(services, caller, arguments, values)


@TOOLS.tool(FinishEdits, AckResponse, offered="agent")
async def memory_finish_edits(services: Services, caller: Caller, arguments: FinishEdits) -> AckResponse:
    """Signals that you have finished editing the memory blocks. This tool changes nothing."""
    return AckResponse(status="ok")


@TOOLS.resource("blocks")
async def blocks_resource(services: Services, caller: Caller, user_id: str, parameter: str) -> BaseModel:
    """The blocks at the top of the user's prompts."""
    reader = Reader(*place_of(caller.scope, caller.namespace, user_id), None)
    return await services[BlockService].list_shown(caller.scope, reader)


async def _edit(services: Services, caller: Caller, arguments: _OwnerArguments, values: Mapping[str, object]) -> BlockEdit:
    permit_agent(caller.scope, arguments.agent_id)
    place = place_of(caller.scope, arguments.namespace or caller.namespace, arguments.user_id or caller.user_id)
    body = read_values(EditBlockRequest, values)
    return await services[BlockService].edit_shown(caller.scope, Reader(*place, arguments.agent_id), arguments.label, body)
