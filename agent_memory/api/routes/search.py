"""Searching long-term memory."""

from __future__ import annotations

from typing import Annotated

from fastapi import Body, Response

from agent_memory.api.answers import ModelResponse, ValuesResponse, errors
from agent_memory.api.deps import OptimizeQuery, RuntimeDep, ScopeDep
from agent_memory.api.memory_types import MemoryTypesHeader, page_as_shown, prompt_as_shown, search_as_shown
from agent_memory.api.operation import operations
from agent_memory_client.models import ExplainRequest, Explanation, MemoryRecordResultsResponse, SearchRequest

router = operations("long-term memory")


@router.post(
    "/v1/long-term-memory/search",
    operation_id="search_long_term_memory_v1_long_term_memory_search_post",
    response_model=MemoryRecordResultsResponse,
    responses=errors(400, 413, 415),
)
async def search_long_term_memory(
    runtime: RuntimeDep,
    scope: ScopeDep,
    body: Annotated[SearchRequest, Body()],
    optimize_query: OptimizeQuery = False,
    memory_types: MemoryTypesHeader = None,
) -> Response:
    """Searches by meaning, by words or by both; without a text, lists what the filters let through."""
    meant, shows = search_as_shown(body, memory_types)
    return ValuesResponse(page_as_shown(await runtime.search.answer(scope, meant, optimize_query=optimize_query), shows=shows))


@router.post(
    "/v1/long-term-memory/explain",
    operation_id="explain_long_term_memory",
    response_model=Explanation,
    responses=errors(400, 413, 415),
)
async def explain_long_term_memory(
    runtime: RuntimeDep, scope: ScopeDep, body: Annotated[ExplainRequest, Body()], memory_types: MemoryTypesHeader = None
) -> Response:
    """Says why a search, or a prompt, did not return a memory: which filter, rank, threshold or budget; or where it stands."""
    if body.search is not None:
        body = body.model_copy(update={"search": search_as_shown(body.search, memory_types)[0]})
    if body.prompt is not None:
        body = body.model_copy(update={"prompt": prompt_as_shown(body.prompt, memory_types)[0]})
    return ModelResponse(await runtime.explains.answer(scope, body))
