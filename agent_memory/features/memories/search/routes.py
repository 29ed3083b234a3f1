"""The route that searches long-term memory."""

from __future__ import annotations

from typing import Annotated

from fastapi import Body, Response

from agent_memory.features.memories.memory_types import MemoryTypesHeader, search_as_shown, show_types
from agent_memory.features.memories.search.service import SearchService
from agent_memory.foundation.api.dependencies import OptimizeQuery, ScopeDep, ServicesDep
from agent_memory.foundation.api.operation import operations
from agent_memory.foundation.api.responses import ValuesResponse, errors
from agent_memory_client.models import MemoryRecordResultsResponse, SearchRequest

router = operations("long-term memory")


@router.post(
    "/v1/long-term-memory/search",
    operation_id="search_long_term_memory_v1_long_term_memory_search_post",
    response_model=MemoryRecordResultsResponse,
    responses=errors(400, 413, 415),
)
async def search_long_term_memory(
    services: ServicesDep,
    scope: ScopeDep,
    body: Annotated[SearchRequest, Body()],
    optimize_query: OptimizeQuery = False,
    memory_types: MemoryTypesHeader = None,
) -> Response:
    """Searches by meaning, by words or by both. Without a text, lists all memories that match the filters."""
    request, shows = search_as_shown(body, memory_types)
    page = await services[SearchService].search_page(scope, request, optimize_query=optimize_query)
    show_types(page.memories, shows=shows)
    return ValuesResponse(page.page_values())
