"""Routes to create, read, change and delete memories."""

from __future__ import annotations

from typing import Annotated

from fastapi import Body, Query, Response

from agent_memory.features.jobs.operations import OperationService
from agent_memory.features.memories.changes.service import HistoryService
from agent_memory.features.memories.memory_types import MemoryTypesHeader, knows_procedural, names_procedural, record_as_shown
from agent_memory.features.memories.service import MemoryService
from agent_memory.foundation.api.dependencies import MemoryPath, ScopeDep, ServicesDep, WaitQuery, WriteScopeDep
from agent_memory.foundation.api.operation import operations
from agent_memory.foundation.api.responses import ModelResponse, errors
from agent_memory_client.models import AckResponse, CreateMemoryRecordRequest, EditMemoryRecordRequest, Identifier, Instant, MemoryRecord

router = operations("long-term memory")

_NO_IDS: list[str] = []


@router.post(
    "/v1/long-term-memory/",
    operation_id="create_long_term_memory_v1_long_term_memory__post",
    response_model=AckResponse,
    responses=errors(400, 409, 413, 415),
)
async def create_long_term_memory(
    services: ServicesDep, scope: WriteScopeDep, body: Annotated[CreateMemoryRecordRequest, Body()], wait: WaitQuery = 0.0
) -> Response:
    """Stores memories.

    Reads and keyword searches find them immediately; searches by meaning find them once they are embedded. `wait` waits
    for the embedding; the header X-Searchable reports whether it is done.
    """
    answer = await services[MemoryService].create(scope, body)
    if wait <= 0:
        return ModelResponse(answer)
    marks = services[OperationService].memory_marks(scope, [record.id for record in body.memories])
    done = await services[OperationService].wait_for_marks(scope, marks, wait)
    return ModelResponse(answer, (b"x-searchable", b"true" if done else b"false"))


@router.delete(
    "/v1/long-term-memory",
    operation_id="delete_long_term_memory_v1_long_term_memory_delete",
    response_model=AckResponse,
    responses=errors(400),
)
async def delete_long_term_memory(
    services: ServicesDep,
    scope: WriteScopeDep,
    memory_ids: Annotated[list[Identifier], Query(description="The ids, each in a parameter of its own.")] = _NO_IDS,
) -> Response:
    """Deletes memories. `status` contains the number of memories that existed. Unknown ids are not an error."""
    return ModelResponse(await services[MemoryService].delete(scope, memory_ids))


@router.get(
    "/v1/long-term-memory/{memory_id:path}",
    operation_id="get_long_term_memory_v1_long_term_memory__memory_id__get",
    response_model=MemoryRecord,
    responses=errors(400, 404),
)
async def get_long_term_memory(
    services: ServicesDep,
    scope: ScopeDep,
    memory_id: MemoryPath,
    as_of: Annotated[Instant | None, Query(description="As it was true at this time, as far as known now.")] = None,
    known_at: Annotated[Instant | None, Query(description="As this server knew it at this time.")] = None,
    history: Annotated[bool, Query(description="Its last version, also when it is no longer current.")] = False,
    memory_types: MemoryTypesHeader = None,
) -> Response:
    """Returns a memory as it is now, or as it was at another time.

    Answers 404 if the memory was not true or not known at that time.
    """
    if history or as_of is not None or known_at is not None:
        times = (None, None) if history else (as_of, known_at)
        record = await services[HistoryService].record_at(scope, memory_id, *times)
    else:
        record = await services[MemoryService].get(scope, memory_id)
    return ModelResponse(record_as_shown(record, shows=knows_procedural(memory_types)))


@router.patch(
    "/v1/long-term-memory/{memory_id:path}",
    operation_id="update_long_term_memory_v1_long_term_memory__memory_id__patch",
    response_model=MemoryRecord,
    responses=errors(400, 404, 409, 413, 415),
)
async def update_long_term_memory(
    services: ServicesDep,
    scope: WriteScopeDep,
    memory_id: MemoryPath,
    body: Annotated[EditMemoryRecordRequest, Body()],
    memory_types: MemoryTypesHeader = None,
) -> Response:
    """Changes the given fields and returns the changed memory."""
    shows = knows_procedural(memory_types) or names_procedural([body.memory_type])
    return ModelResponse(
        record_as_shown(await services[MemoryService].patch(scope, memory_id, body, shown_as_semantic=not shows), shows=shows)
    )
