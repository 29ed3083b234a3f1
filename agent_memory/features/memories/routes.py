"""Routes for long-term memory, changes, retention, repeats and quarantine."""

from __future__ import annotations

from typing import Annotated

from fastapi import Body, Path, Query, Response

from agent_memory.features.jobs.operations import MAX_WAIT_SECONDS, UNTOUCHED_SECONDS, OperationService
from agent_memory.features.memories.changes.replays import CHANGE_REPLAY, RECORD_REPLAY
from agent_memory.features.memories.changes.service import HistoryService
from agent_memory.features.memories.duplicates.service import DuplicateService
from agent_memory.features.memories.memory_types import (
    MemoryTypesHeader,
    knows_procedural,
    names_procedural,
    record_as_shown,
    search_as_shown,
    show_types,
)
from agent_memory.features.memories.quarantine.service import QuarantineService
from agent_memory.features.memories.retention.service import RetentionService, parse_policy
from agent_memory.features.memories.search.service import SearchService
from agent_memory.features.memories.service import MemoryService
from agent_memory.features.memories.upkeep.scan import Selection
from agent_memory.foundation.api.dependencies import (
    AdminScopeDep,
    MemoryPath,
    NamespaceQuery,
    OptimizeQuery,
    ScopeDep,
    ServicesDep,
    UserQuery,
    WaitQuery,
    WriteScopeDep,
)
from agent_memory.foundation.api.operation import deleting, operations, replaying
from agent_memory.foundation.api.responses import ModelResponse, ValuesResponse, errors
from agent_memory_client.models import (
    AckResponse,
    Change,
    ChangeKindEnum,
    ChangeListResponse,
    ChangeStateEnum,
    CreateMemoryRecordRequest,
    EditMemoryRecordRequest,
    ForgetRequest,
    ForgetResponse,
    Identifier,
    Instant,
    MemoryEvidence,
    MemoryHistory,
    MemoryRecord,
    MemoryRecordResultsResponse,
    OptionalIdentifier,
    QuarantineListResponse,
    SearchRequest,
)

router = operations("long-term memory")
quarantine_router = operations("quarantine")

ChangePath = Annotated[Identifier, Path(description="The change's id, from the list of changes.")]
BatchPath = Annotated[Identifier, Path(description="The `batch_id` of the changes.")]
_NO_IDS: list[str] = []


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
    """Searches memories by meaning, by keyword, or both.

    If there is no text, lists all memories that match the filters.
    """
    request, shows = search_as_shown(body, memory_types)
    page = await services[SearchService].search_page(scope, request, optimize_query=optimize_query)
    show_types(page.memories, shows=shows)
    return ValuesResponse(page.page_values())


@router.get(
    "/v1/long-term-memory/{memory_id:path}/evidence",
    operation_id="get_memory_evidence",
    response_model=MemoryEvidence,
    responses=errors(404),
)
async def get_evidence(services: ServicesDep, scope: ScopeDep, memory_id: MemoryPath) -> Response:
    """Returns a memory's evidence, with the cited messages that still exist."""
    return ModelResponse(await services[HistoryService].read_evidence(scope, memory_id))


@router.get(
    "/v1/long-term-memory/{memory_id:path}/history",
    operation_id="get_memory_history",
    response_model=MemoryHistory,
    responses=errors(404),
)
async def get_history(services: ServicesDep, scope: ScopeDep, memory_id: MemoryPath) -> Response:
    """Returns all versions of a memory, newest first, and the changes that affected it."""
    return ModelResponse(await services[HistoryService].read_history(scope, memory_id))


@router.get("/v1/changes", operation_id="list_changes", response_model=ChangeListResponse, responses=errors(400))
async def list_changes(
    services: ServicesDep,
    scope: ScopeDep,
    memory_id: Annotated[Identifier | None, Query(description="Only changes to this memory. Other filters are ignored.")] = None,
    kind: Annotated[ChangeKindEnum | None, Query(description="Only changes of this kind.")] = None,
    state: Annotated[ChangeStateEnum | None, Query(description="Only changes in this state; `proposed` lists the open proposals.")] = None,
    batch_id: Annotated[Identifier | None, Query(description="Only changes in this batch.")] = None,
    namespace: NamespaceQuery = None,
    user_id: UserQuery = None,
    limit: Annotated[int, Query(ge=1, le=100, description="The maximum number of changes.")] = 20,
    offset: Annotated[int, Query(ge=0, le=1_000_000, description="The previous page's `next_offset`.")] = 0,
) -> Response:
    """Returns a page of recorded changes, newest first."""
    filters = {"kd": kind, "st": state, "bt": batch_id, "ns": namespace, "u": user_id}
    values = {name: str(value) for name, value in filters.items() if value is not None}
    return ModelResponse(await services[HistoryService].read_changes(scope, values, memory_id, offset, limit))


@router.get("/v1/changes/{change_id}", operation_id="get_change", response_model=Change, responses=errors(404))
async def get_change(services: ServicesDep, scope: ScopeDep, change_id: ChangePath) -> Response:
    """Returns a change, including each memory's state before and after it."""
    return ModelResponse(await services[HistoryService].read_change(scope, change_id))


@router.post("/v1/changes/{change_id}/undo", operation_id="undo_change", response_model=Change, responses=errors(404, 409))
@replaying(CHANGE_REPLAY)
async def undo_change(services: ServicesDep, scope: WriteScopeDep, change_id: ChangePath) -> Response:
    """Undoes a change and returns the new change that records the undo. You can also undo that change."""
    return ModelResponse(await services[HistoryService].undo_by_id(scope, change_id))


@router.post("/v1/changes/{change_id}/approve", operation_id="approve_change", response_model=Change, responses=errors(404, 409))
@replaying(CHANGE_REPLAY)
async def approve_change(services: ServicesDep, scope: WriteScopeDep, change_id: ChangePath) -> Response:
    """Applies a proposal."""
    return ModelResponse(await services[HistoryService].approve_proposal(scope, change_id))


@router.post("/v1/changes/{change_id}/reject", operation_id="reject_change", response_model=Change, responses=errors(404, 409))
@replaying(CHANGE_REPLAY)
async def reject_change(services: ServicesDep, scope: WriteScopeDep, change_id: ChangePath) -> Response:
    """Rejects a proposal without changing any memories."""
    return ModelResponse(await services[HistoryService].reject_proposal(scope, change_id))


@router.post(
    "/v1/changes/batches/{batch_id}/undo", operation_id="undo_batch", response_model=ChangeListResponse, responses=errors(404, 409)
)
@replaying(CHANGE_REPLAY)
async def undo_batch(services: ServicesDep, scope: WriteScopeDep, batch_id: BatchPath) -> Response:
    """Undoes all applied changes in a batch, newest first."""
    return ModelResponse(await services[HistoryService].undo_batch(scope, batch_id))


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

    Reads and keyword searches find the memories immediately. Searches by meaning find them once they are embedded. With
    `wait`, the server waits for the embedding. The header X-Searchable reports whether the embedding is done.
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
    memory_ids: Annotated[list[Identifier], Query(description="The ids, each as a separate parameter.")] = _NO_IDS,
) -> Response:
    """Deletes memories. `status` contains the number of deleted memories. Ignores unknown ids."""
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
    as_of: Annotated[Instant | None, Query(description="The version that was true at this time, as far as is known now.")] = None,
    known_at: Annotated[Instant | None, Query(description="The version that the server knew at this time.")] = None,
    history: Annotated[bool, Query(description="The last version, even if it is no longer current.")] = False,
    memory_types: MemoryTypesHeader = None,
) -> Response:
    """Returns a memory's current state, or its state at a given time.

    Returns 404 if the memory was not true or not known at that time.
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


@router.post(
    "/v1/long-term-memory/forget",
    operation_id="forget_endpoint_v1_long_term_memory_forget_post",
    response_model=ForgetResponse,
    responses=errors(413, 415),
)
@deleting
async def forget(
    services: ServicesDep,
    scope: WriteScopeDep,
    body: Annotated[ForgetRequest, Body()],
    namespace: NamespaceQuery = None,
    user_id: UserQuery = None,
    session_id: Annotated[OptionalIdentifier, Query(description="The memories' session.")] = None,
    limit: Annotated[int, Query(ge=0, le=1_000_000, description="Maximum memories to delete per call, never more than 10,000.")] = 1000,
    dry_run: Annotated[bool, Query(description="Only return what would be deleted.")] = True,
) -> Response:
    """Deletes memories that are too old, unread for too long, or beyond a budget. Never deletes pinned memories.

    Evaluates all matching memories (`scanned`). Deletes at most `limit` of them, oldest first. To delete the rest, call
    again.
    """
    policy, selection = parse_policy(body.policy), Selection.of(namespace, user_id, session_id)
    excluded_ids = frozenset(body.pinned_ids or ())
    forget_by_policy = services[RetentionService].forget_by_policy
    return ModelResponse(await forget_by_policy(scope, policy, selection, excluded_ids=excluded_ids, limit=limit, dry_run=dry_run))


@router.post(
    "/v1/long-term-memory/compact",
    operation_id="compact_long_term_memories_endpoint_v1_long_term_memory_compact_post",
    response_model=AckResponse,
    responses=errors(400),
)
async def compact(services: ServicesDep, scope: WriteScopeDep, namespace: NamespaceQuery = None, user_id: UserQuery = None) -> Response:
    """Merges memories that say the same thing. The server responds when a worker has merged them.

    After 20 seconds, or after 3 seconds if no worker has started, the server responds with
    `X-Pending: true`, and the work continues. `X-Operation-Id` is the operation's id.
    """
    services[MemoryService].require()
    mark = await services[DuplicateService].order_compaction(scope, namespace, user_id)
    done = await services[OperationService].wait_for_marks(scope, [mark], MAX_WAIT_SECONDS, untouched=UNTOUCHED_SECONDS)
    remaining = await services[DuplicateService].count_remaining(scope, namespace, user_id)
    headers = [(b"x-operation-id", mark.operation_id.encode()), (b"x-pending", b"false" if done else b"true")]
    return ModelResponse(AckResponse(status=f"ok, {remaining} memories remaining after compaction"), *headers)


@quarantine_router.get("/v1/quarantine", operation_id="list_quarantine", response_model=QuarantineListResponse, responses=errors())
async def list_quarantine(
    services: ServicesDep,
    scope: ScopeDep,
    user_id: UserQuery = None,
    namespace: NamespaceQuery = None,
    limit: Annotated[int, Query(ge=1, le=100, description="The maximum number of memories.")] = 20,
    offset: Annotated[int, Query(ge=0, le=1_000_000, description="The previous page's `next_offset`.")] = 0,
) -> Response:
    """Lists memories that await review, newest first. `quarantine` contains the reason."""
    return ModelResponse(await services[QuarantineService].list_quarantined(scope, namespace, user_id, offset, limit))


@quarantine_router.post(
    "/v1/quarantine/{memory_id:path}/approve",
    operation_id="approve_quarantined",
    response_model=MemoryRecord,
    responses=errors(404, 409),
)
@replaying(RECORD_REPLAY)
async def approve_quarantined(services: ServicesDep, scope: AdminScopeDep, memory_id: MemoryPath) -> Response:
    """Releases a memory from quarantine with its current text, so that searches find it.

    For administrators only: writers must not approve their own text.
    """
    return ModelResponse(await services[QuarantineService].approve_memory(scope, memory_id))


@quarantine_router.post(
    "/v1/quarantine/{memory_id:path}/reject",
    operation_id="reject_quarantined",
    response_model=AckResponse,
    responses=errors(404, 409),
)
async def reject_quarantined(services: ServicesDep, scope: WriteScopeDep, memory_id: MemoryPath) -> Response:
    """Permanently deletes a quarantined memory."""
    return ModelResponse(await services[QuarantineService].reject_memory(scope, memory_id))
