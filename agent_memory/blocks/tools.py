"""The tools with which an agent edits its own memory blocks."""

from __future__ import annotations

from pydantic import BaseModel, Field

from agent_memory.access.principals import permit_agent, place_of
from agent_memory.blocks.service import BlockService
from agent_memory.core.feature import Services
from agent_memory.core.mcp_tools import Caller, ToolSet, read_values
from agent_memory.core.prompt_sections import Reader
from agent_memory_client.models import OptionalIdentifier
from agent_memory_client.models.features.blocks import BlockEdit, BlockLabel, BlockText, EditBlockRequest

TOOLS = ToolSet()


class _Whose(BaseModel):
    """Whose prompts show the block."""

    label: BlockLabel = Field(description="The block's label, as the prompt shows it.")
    agent_id: OptionalIdentifier = Field(None, description="The agent whose prompt it is.")
    user_id: OptionalIdentifier = Field(None, description="The user whose prompt it is.")
    namespace: OptionalIdentifier = Field(None, description="The namespace of the prompt.")


class AppendToBlock(_Whose):
    """What core_memory_append takes."""

    content: BlockText = Field(description="The line to add at the end.")


class ReplaceInBlock(_Whose):
    """What core_memory_replace takes."""

    old_content: BlockText = Field(description="The exact text to replace, which stands once in the block.")
    new_content: BlockText = Field(description="What stands there then; empty removes it.")


@TOOLS.tool(AppendToBlock, BlockEdit, writes=True, offered="agent")
async def core_memory_append(services: Services, caller: Caller, arguments: AppendToBlock) -> BaseModel:
    """Adds a line to a memory block, which stands in every prompt.

    Use it when you learn something that must always be in mind, such as the user's name. A full block refuses: remove something first.
    """
    body = read_values(EditBlockRequest, {"operation": "append", "content": arguments.content})
    return await services[BlockService].edit_shown(caller.scope, _reader(caller, arguments), arguments.label, body)


@TOOLS.tool(ReplaceInBlock, BlockEdit, writes=True, destroys=True, offered="agent")
async def core_memory_replace(services: Services, caller: Caller, arguments: ReplaceInBlock) -> BaseModel:
    """Replaces a text in a memory block, or removes it: what is no longer true, or what makes room.

    `old_content` must be the exact text; a refusal shows what is nearest to it.
    """
    values = {"operation": "replace", "content": arguments.new_content, "old_content": arguments.old_content}
    body = read_values(EditBlockRequest, values)
    return await services[BlockService].edit_shown(caller.scope, _reader(caller, arguments), arguments.label, body)


def _reader(caller: Caller, arguments: _Whose) -> Reader:
    """Whose prompt is meant. Raises Forbidden for what is out of reach."""
    permit_agent(caller.scope, arguments.agent_id)
    place = place_of(caller.scope, arguments.namespace or caller.namespace, arguments.user_id or caller.user_id)
    return Reader(*place, arguments.agent_id)
