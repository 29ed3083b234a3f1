"""The memory prompt."""

from __future__ import annotations

from typing import Annotated

from fastapi import Body, Response

from agent_memory.api.answers import ValuesResponse, errors
from agent_memory.api.deps import OptimizeQuery, RuntimeDep, ScopeDep
from agent_memory.api.memory_types import MemoryTypesHeader, page_as_shown, prompt_as_shown
from agent_memory.api.operation import operations
from agent_memory_client.models import MemoryPromptRequest, MemoryPromptResponse

router = operations("memory prompt")


@router.post(
    "/v1/memory/prompt",
    operation_id="memory_prompt_v1_memory_prompt_post",
    response_model=MemoryPromptResponse,
    responses=errors(400, 413, 415),
)
async def memory_prompt(
    runtime: RuntimeDep,
    scope: ScopeDep,
    body: Annotated[MemoryPromptRequest, Body()],
    optimize_query: OptimizeQuery = False,
    memory_types: MemoryTypesHeader = None,
) -> Response:
    """Messages ready for a chat model: the session's summary and messages, the memories that fit the query, and the query."""
    meant, shows = prompt_as_shown(body, memory_types)
    return ValuesResponse(page_as_shown(await runtime.recall.answer(scope, meant, optimize_query=optimize_query), shows=shows))
