"""HTTP operations for procedures, session results and tool statistics."""

from __future__ import annotations

from typing import Annotated

from fastapi import Body, Path, Query, Response

from agent_memory.extensions.procedures.learning.results import ResultStore
from agent_memory.extensions.procedures.service import ProcedureService, owner_of
from agent_memory.extensions.procedures.store import MAX_OFFSET
from agent_memory.foundation.api.dependencies import (
    AgentOwnerQuery,
    IfMatch,
    OwnerQuery,
    ScopeDep,
    ServicesDep,
    SessionPath,
    WriteScopeDep,
    version_of,
)
from agent_memory.foundation.api.operation import operations
from agent_memory.foundation.api.principals import session_of
from agent_memory.foundation.api.responses import ModelResponse, errors, etag, versioned
from agent_memory.foundation.core.errors import NotFound
from agent_memory.foundation.core.permissions import access_denied
from agent_memory_client.models import AckResponse, Identifier, OptionalIdentifier
from agent_memory_client.models.features import procedures as wire

router = operations("procedures")

ProcedurePath = Annotated[Identifier, Path(description="The procedure's id.")]
LimitQuery = Annotated[int, Query(ge=1, le=100, description="The maximum number of results.")]
OffsetQuery = Annotated[int, Query(ge=0, le=MAX_OFFSET, description="The number of results to skip.")]


@router.post("/v1/procedures", response_model=wire.Procedure, responses=versioned(400, 409, 413, 415))
async def create_procedure(services: ServicesDep, scope: WriteScopeDep, body: Annotated[wire.CreateProcedureRequest, Body()]) -> Response:
    """Stores a procedure for a situation.

    The server generates its id. Keyword searches find the procedure immediately. Semantic searches find it a moment
    later.
    """
    procedure = await services[ProcedureService].create(scope, body)
    return ModelResponse(procedure, etag(procedure.version))


@router.get("/v1/procedures", response_model=wire.ProcedureListResponse, responses=errors())
async def list_procedures(
    services: ServicesDep,
    scope: ScopeDep,
    names: AgentOwnerQuery,
    state: Annotated[wire.ProcedureState | None, Query(description="Only procedures in this state.")] = None,
    limit: LimitQuery = 20,
    offset: OffsetQuery = 0,
) -> Response:
    """Lists procedures, newest first. A given user, agent or namespace must match exactly."""
    owner = wire.ProcedureOwner(**names.model_dump())
    return ModelResponse(await services[ProcedureService].list(scope, owner, state=state, offset=offset, limit=limit))


@router.post("/v1/procedures/search", response_model=wire.ProcedureSearchResponse, responses=errors(400, 413, 415))
async def search_procedures(services: ServicesDep, scope: ScopeDep, body: Annotated[wire.ProcedureSearchRequest, Body()]) -> Response:
    """Finds procedures for a situation by meaning and keyword, ranked by fit and success rate."""
    return ModelResponse(await services[ProcedureService].search(scope, body))


@router.get("/v1/procedures/{procedure_id}", response_model=wire.Procedure, responses=versioned(404))
async def get_procedure(services: ServicesDep, scope: ScopeDep, procedure_id: ProcedurePath) -> Response:
    """Returns a procedure. The ETag is its version."""
    procedure = await services[ProcedureService].get(scope, procedure_id)
    return ModelResponse(procedure, etag(procedure.version))


@router.patch("/v1/procedures/{procedure_id}", response_model=wire.Procedure, responses=versioned(400, 404, 409, 412, 413, 415))
async def update_procedure(
    services: ServicesDep,
    scope: WriteScopeDep,
    procedure_id: ProcedurePath,
    body: Annotated[wire.UpdateProcedureRequest, Body()],
    if_match: IfMatch = None,
) -> Response:
    """Changes the given fields of a procedure, retires it, or restores it.

    Only administrators can approve a quarantined procedure.
    """
    procedure = await services[ProcedureService].update(scope, procedure_id, body, if_match=version_of(if_match))
    return ModelResponse(procedure, etag(procedure.version))


@router.delete("/v1/procedures/{procedure_id}", response_model=AckResponse, responses=errors())
async def delete_procedure(services: ServicesDep, scope: WriteScopeDep, procedure_id: ProcedurePath) -> Response:
    """Deletes a procedure with its history and feedback. A missing procedure is not an error."""
    return ModelResponse(await services[ProcedureService].delete(scope, procedure_id))


@router.post("/v1/procedures/{procedure_id}/feedback", response_model=wire.Procedure, responses=versioned(400, 404, 409, 413, 415))
async def give_procedure_feedback(
    services: ServicesDep, scope: WriteScopeDep, procedure_id: ProcedurePath, body: Annotated[wire.ProcedureFeedbackRequest, Body()]
) -> Response:
    """Records whether a procedure helped. Requests with the same `Idempotency-Key` count once."""
    procedure = await services[ProcedureService].give_feedback(scope, procedure_id, body)
    return ModelResponse(procedure, etag(procedure.version))


@router.get("/v1/procedures/{procedure_id}/history", response_model=wire.ProcedureHistory, responses=errors(404))
async def get_procedure_history(services: ServicesDep, scope: ScopeDep, procedure_id: ProcedurePath) -> Response:
    """Returns a procedure's latest changes, by callers and workers, and its latest feedback."""
    return ModelResponse(await services[ProcedureService].load_history(scope, procedure_id))


@router.post("/v1/procedures/{procedure_id}/undo", response_model=wire.Procedure, responses=versioned(404, 409))
async def undo_procedure_change(services: ServicesDep, scope: WriteScopeDep, procedure_id: ProcedurePath) -> Response:
    """Undoes the last change to a procedure, no matter who made it. A second undo undoes the first."""
    procedure = await services[ProcedureService].undo(scope, procedure_id)
    return ModelResponse(procedure, etag(procedure.version))


@router.patch("/v1/working-memory/{session_id:path}/result", response_model=wire.SessionResult, responses=errors(400, 404, 409, 413, 415))
async def mark_session_result(
    services: ServicesDep,
    scope: WriteScopeDep,
    session_id: SessionPath,
    body: Annotated[wire.SessionResultRequest, Body()],
    names: OwnerQuery,
) -> Response:
    """Stores the result of a session. A worker then learns from the session.

    Storing the same result again changes nothing. If the result is different, the worker learns again.
    """
    ref = session_of(scope, session_id, names.namespace, names.user_id)
    owner = owner_of(scope, wire.ProcedureOwner(user_id=ref.user_id, namespace=ref.namespace, agent_id=body.agent_id))
    marked = await services[ResultStore].mark(scope, ref, body.model_copy(update={"agent_id": owner.agent_id}))
    if marked is None:
        raise NotFound(f"Session {session_id} not found", field="session_id")
    return ModelResponse(marked)


@router.get(
    # A separate path, because GET /v1/working-memory/{session_id} takes everything that follows as the session's id.
    "/v1/session-results/{session_id}",
    response_model=wire.SessionResult,
    responses=errors(404),
)
async def get_session_result(services: ServicesDep, scope: ScopeDep, session_id: SessionPath, names: OwnerQuery) -> Response:
    """Returns the result of a session, and what a worker learned from it."""
    result = await services[ResultStore].load(scope, session_of(scope, session_id, names.namespace, names.user_id))
    if result is None:
        raise NotFound(f"Session {session_id} has no result", field="session_id")
    if scope.agents is not None and result.agent_id not in scope.agents:
        raise access_denied("the agent of this result", "session_id")
    return ModelResponse(result)


@router.get("/v1/tools/memory", response_model=wire.ToolMemoryListResponse, responses=errors())
async def list_tool_memory(
    services: ServicesDep,
    scope: ScopeDep,
    names: AgentOwnerQuery,
    tool: Annotated[OptionalIdentifier, Query(description="Only this tool.")] = None,
    limit: LimitQuery = 20,
    offset: OffsetQuery = 0,
) -> Response:
    """Returns tool statistics: successful arguments, counts, durations and costs."""
    owner = wire.ProcedureOwner(**names.model_dump())
    return ModelResponse(await services[ProcedureService].list_tools(scope, owner, tool, offset=offset, limit=limit))


@router.post("/v1/tools/memory", response_model=wire.ToolMemory, responses=errors(400, 409, 413, 415))
async def count_tool_call(services: ServicesDep, scope: WriteScopeDep, body: Annotated[wire.ToolCallRequest, Body()]) -> Response:
    """Counts a tool call.

    Do not use this operation for calls in a session that has a result. The server counts those
    calls.
    """
    return ModelResponse(await services[ProcedureService].count_tool_call(scope, body))
