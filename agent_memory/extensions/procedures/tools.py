"""MCP tools that let a model find and store procedures."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from agent_memory.extensions.procedures.service import ProcedureService
from agent_memory.foundation.core.feature import Services
from agent_memory.foundation.core.mcp_tools import Caller, ToolSet, read_values
from agent_memory_client.models import OptionalIdentifier
from agent_memory_client.models.features.procedures import (
    CreateProcedureRequest,
    Procedure,
    ProcedureSearchRequest,
    ProcedureSearchResponse,
)

TOOLS = ToolSet()


class SearchProceduresArguments(BaseModel):
    situation: Annotated[str, Field(description="The task, in plain words.")]
    limit: Annotated[int, Field(ge=1, le=50, description="Maximum number of procedures.")] = 5
    user_id: Annotated[OptionalIdentifier, Field(description="The user that owns the procedures.")] = None
    agent_id: Annotated[OptionalIdentifier, Field(description="The agent that owns the procedures.")] = None
    namespace: Annotated[OptionalIdentifier, Field(description="The namespace of the procedures.")] = None


class SaveProcedureArguments(BaseModel):
    when_to_use: Annotated[str, Field(description="The kind of situation in which to use the procedure.")]
    steps: Annotated[list[str], Field(description="The steps, in order.")]
    tools: Annotated[list[str], Field(description="The names of the tools that the procedure uses.")] = []
    pitfalls: Annotated[list[str], Field(description="Actions that did not work.")] = []
    user_id: Annotated[OptionalIdentifier, Field(description="The user that owns the procedure.")] = None
    agent_id: Annotated[OptionalIdentifier, Field(description="The agent that owns the procedure.")] = None
    namespace: Annotated[OptionalIdentifier, Field(description="The namespace of the procedure.")] = None


@TOOLS.tool(SearchProceduresArguments, ProcedureSearchResponse, offered="agent")
async def search_procedures(services: Services, caller: Caller, arguments: SearchProceduresArguments) -> BaseModel:
    """Finds what worked before in similar situations: steps, tools and what to avoid. Use it before a task with several steps."""
    body = read_values(ProcedureSearchRequest, arguments.model_dump() | _owner(caller, arguments))
    return await services[ProcedureService].search(caller.scope, body)


@TOOLS.tool(SaveProcedureArguments, Procedure, writes=True, offered="agent")
async def save_procedure(services: Services, caller: Caller, arguments: SaveProcedureArguments) -> BaseModel:
    """Saves steps that worked, for the next situation of the same kind. Use it after a task with several steps has succeeded."""
    body = read_values(CreateProcedureRequest, arguments.model_dump() | _owner(caller, arguments))
    return await services[ProcedureService].create(caller.scope, body)


def _owner(caller: Caller, arguments: SearchProceduresArguments | SaveProcedureArguments) -> dict[str, str | None]:
    return {"user_id": arguments.user_id or caller.user_id, "namespace": arguments.namespace or caller.namespace}
