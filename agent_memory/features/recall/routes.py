"""HTTP routes to build a memory prompt, and to explain why it omits a memory."""

from __future__ import annotations

from typing import Annotated

from fastapi import Body, Response

from agent_memory.features.memories.memory_types import MemoryTypesHeader, prompt_as_shown, search_as_shown, show_types
from agent_memory.features.recall.service import RecallService
from agent_memory.foundation.api.dependencies import OptimizeQuery, ScopeDep, ServicesDep
from agent_memory.foundation.api.operation import operations
from agent_memory.foundation.api.responses import ModelResponse, ValuesResponse, errors
from agent_memory_client.models import ExplainRequest, Explanation, MemoryPromptRequest, MemoryPromptResponse

router = operations("memory prompt")
explain_router = operations("long-term memory")


@router.post(
    "/v1/memory/prompt",
    operation_id="memory_prompt_v1_memory_prompt_post",
    response_model=MemoryPromptResponse,
    responses=errors(400, 413, 415),
)
async def memory_prompt(
    services: ServicesDep,
    scope: ScopeDep,
    body: Annotated[MemoryPromptRequest, Body()],
    optimize_query: OptimizeQuery = False,
    memory_types: MemoryTypesHeader = None,
) -> Response:
    """Returns messages to send to a chat model.

    They contain the session's summary and messages, the memories that match the query, and the
    query.
    """
    request, shows = prompt_as_shown(body, memory_types)
    prompt = await services[RecallService].build_prompt(scope, request, optimize_query=optimize_query)
    show_types(prompt.memories, shows=shows)
    return ValuesResponse(prompt.prompt_values())


@explain_router.post(
    "/v1/long-term-memory/explain",
    operation_id="explain_long_term_memory",
    response_model=Explanation,
    responses=errors(400, 413, 415),
)
async def explain_long_term_memory(
    services: ServicesDep, scope: ScopeDep, body: Annotated[ExplainRequest, Body()], memory_types: MemoryTypesHeader = None
) -> Response:
    """Explains why a search or prompt omitted a memory, or returns the memory's rank.

    A memory can be omitted because of a filter, its rank, a threshold or the token budget.
    """
    if body.search is not None:
        body = body.model_copy(update={"search": search_as_shown(body.search, memory_types)[0]})
    if body.prompt is not None:
        body = body.model_copy(update={"prompt": prompt_as_shown(body.prompt, memory_types)[0]})
    return ModelResponse(await services[RecallService].explain_memory_of(scope, body))
