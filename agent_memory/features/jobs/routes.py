"""Routes for background work, session flushes and the load history."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Path, Query, Request, Response

from agent_memory.features.jobs.load_store import LoadStore
from agent_memory.features.jobs.operations import OperationService
from agent_memory.foundation.api.dependencies import (
    CallerDep,
    NamespaceQuery,
    ScopeDep,
    ServicesDep,
    SessionPath,
    UserQuery,
    WaitQuery,
    WriteScopeDep,
    home_of,
)
from agent_memory.foundation.api.operation import operations
from agent_memory.foundation.api.principals import session_of
from agent_memory.foundation.api.responses import ModelResponse, errors
from agent_memory.foundation.core.errors import Forbidden
from agent_memory_client.models import (
    AckResponse,
    LoadHistory,
    LoadPeriod,
    OperationKind,
    OperationListResponse,
    OperationRecord,
    OperationState,
)

router = operations("operations")

OperationPath = Annotated[str, Path(max_length=100, description="The operation's id, from `X-Operation-Id` or the list.")]


@router.get("/v1/operations", operation_id="list_operations", response_model=OperationListResponse, responses=errors())
async def list_operations(
    services: ServicesDep,
    scope: ScopeDep,
    state: Annotated[
        OperationState | None,
        Query(description="Only operations in this state. The only finished ones listed are erasures, newest first."),
    ] = None,
    kind: Annotated[OperationKind | None, Query(description="Only operations of this kind.")] = None,
    limit: Annotated[int, Query(ge=1, le=100, description="The maximum number of operations.")] = 20,
    offset: Annotated[int, Query(ge=0, le=10_000_000, description="The previous page's `next_offset`.")] = 0,
) -> Response:
    """Lists unfinished background work, most urgent first.

    `state=dead` lists work that the server gave up on.
    """
    return ModelResponse(await services[OperationService].list_operations(scope, state=state, kind=kind, offset=offset, limit=limit))


@router.get("/v1/operations/{operation_id}", operation_id="get_operation", response_model=OperationRecord, responses=errors(404))
async def get_operation(services: ServicesDep, scope: ScopeDep, operation_id: OperationPath) -> Response:
    """Returns an operation's state and its last error."""
    return ModelResponse(await services[OperationService].get_operation(scope, operation_id))


@router.post(
    "/v1/operations/{operation_id}/replay", operation_id="replay_operation", response_model=OperationRecord, responses=errors(404, 409)
)
async def replay_operation(services: ServicesDep, scope: WriteScopeDep, operation_id: OperationPath) -> Response:
    """Retries an operation that the server gave up on."""
    return ModelResponse(await services[OperationService].replay_operation(scope, operation_id))


@router.delete("/v1/operations/{operation_id}", operation_id="drop_operation", response_model=AckResponse, responses=errors(404, 409))
async def drop_operation(services: ServicesDep, scope: WriteScopeDep, operation_id: OperationPath) -> Response:
    """Drops an operation that the server gave up on. The memory or session that it worked on remains unchanged."""
    await services[OperationService].drop_operation(scope, operation_id)
    return ModelResponse(AckResponse(status="ok"))


@router.post(
    "/v1/working-memory/{session_id:path}/flush", operation_id="flush_working_memory", response_model=AckResponse, responses=errors()
)
async def flush_working_memory(
    services: ServicesDep,
    scope: WriteScopeDep,
    session_id: SessionPath,
    user_id: UserQuery = None,
    namespace: NamespaceQuery = None,
    wait: WaitQuery = 0.0,
) -> Response:
    """Starts a session's pending work immediately: promotion, summary and facts.

    With `wait`, returns the status `pending` if the work is not done in time.
    """
    ref = session_of(scope, session_id, namespace, user_id)
    await services[OperationService].hasten_session(scope, ref)
    marks = services[OperationService].session_marks(scope, ref)
    done = wait <= 0 or await services[OperationService].wait_for_marks(scope, marks, wait)
    headers = ((b"x-operation-id", mark.operation_id.encode()) for mark in marks[:1])
    return ModelResponse(AckResponse(status="ok" if done else "pending"), *headers)


def load_store_of(request: Request) -> LoadStore:
    return home_of(request).services[LoadStore]


@router.get("/v1/metrics/history", operation_id="get_load_history", response_model=LoadHistory, responses=errors())
async def get_load_history(
    caller: CallerDep,
    store: Annotated[LoadStore, Depends(load_store_of)],
    period: Annotated[LoadPeriod, Query(description="The last `hour` in 1-minute steps, or the last `day` in 10-minute steps.")] = "hour",
) -> Response:
    """Returns the server's load over the last hour or day. Operators only.

    The load covers all tenants and includes totals, requests, response times, pending work and
    model tokens.
    """
    if not caller.operator:
        raise Forbidden("only operators may read the server's load: use AUTH_ADMIN_TOKEN")
    return ModelResponse(await store.read_history(period))
