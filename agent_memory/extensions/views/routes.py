"""HTTP operations for summary views."""

from __future__ import annotations

from typing import Annotated

from fastapi import Body, Path, Query, Response

from agent_memory.extensions.views.service import ViewService
from agent_memory.foundation.api.dependencies import OwnerQuery, ScopeDep, ServicesDep, WriteScopeDep
from agent_memory.foundation.api.operation import computing, operations
from agent_memory.foundation.api.responses import JsonResponse, ModelResponse, errors
from agent_memory_client.models import (
    AckResponse,
    CreateSummaryViewRequest,
    Identifier,
    OptionalIdentifier,
    RunSummaryViewPartitionRequest,
    RunSummaryViewRequest,
    SummaryView,
    SummaryViewPartitionResult,
    Task,
)

router = operations("summary views")

ViewPath = Annotated[str, Path(description="The view's id, as returned by the server.")]


@router.get(
    "/v1/summary-views",
    operation_id="list_summary_views_endpoint_v1_summary_views_get",
    response_model=list[SummaryView],
    responses=errors(),
)
async def list_summary_views(services: ServicesDep, scope: ScopeDep) -> Response:
    """Returns all views, oldest first."""
    return JsonResponse(await services[ViewService].list_views(scope))


@router.post("/v1/summary-views", response_model=SummaryView, responses=errors(400, 409, 413, 415))
async def create_summary_view(services: ServicesDep, scope: WriteScopeDep, body: Annotated[CreateSummaryViewRequest, Body()]) -> Response:
    """Creates a view. The server generates its id."""
    return ModelResponse(await services[ViewService].create_view(scope, body))


@router.get("/v1/summary-views/{view_id}", response_model=SummaryView, responses=errors(404))
async def get_summary_view(services: ServicesDep, scope: ScopeDep, view_id: ViewPath) -> Response:
    """Returns a view's definition. Its partitions contain the summaries."""
    return ModelResponse(await services[ViewService].get_view(scope, view_id))


@router.delete(
    "/v1/summary-views/{view_id}",
    operation_id="delete_summary_view_endpoint_v1_summary_views__view_id__delete",
    response_model=AckResponse,
    responses=errors(),
)
async def delete_summary_view(services: ServicesDep, scope: WriteScopeDep, view_id: ViewPath) -> Response:
    """Deletes a view and its partitions. A missing view is not an error."""
    return ModelResponse(await services[ViewService].delete_view(scope, view_id))


@router.post(
    "/v1/summary-views/{view_id}/partitions/run", response_model=SummaryViewPartitionResult, responses=errors(400, 404, 409, 413, 415)
)
@computing
async def run_summary_view_partition(
    services: ServicesDep, scope: WriteScopeDep, view_id: ViewPath, body: Annotated[RunSummaryViewPartitionRequest, Body()]
) -> Response:
    """Computes and stores one partition now.

    If no language model wrote the summary, `degraded` contains the reason.
    """
    return ModelResponse(await services[ViewService].run_partition(scope, view_id, body))


@router.get("/v1/summary-views/{view_id}/partitions", response_model=list[SummaryViewPartitionResult], responses=errors(404))
async def list_summary_view_partitions(
    services: ServicesDep,
    scope: ScopeDep,
    view_id: ViewPath,
    names: OwnerQuery,
    session_id: Annotated[OptionalIdentifier, Query(description="Only groups for this session.")] = None,
    memory_type: Annotated[OptionalIdentifier, Query(description="Only groups for this memory type.")] = None,
) -> Response:
    """Returns the stored partitions of a view. Does not compute any."""
    group_values = names.model_dump() | {"session_id": session_id, "memory_type": memory_type}
    return JsonResponse(await services[ViewService].read_partitions(scope, view_id, group_values))


@router.post(
    "/v1/summary-views/{view_id}/run",
    operation_id="run_summary_view_full_v1_summary_views__view_id__run_post",
    response_model=Task,
    responses=errors(404, 413, 415),
)
async def run_summary_view(
    services: ServicesDep, scope: WriteScopeDep, view_id: ViewPath, body: Annotated[RunSummaryViewRequest, Body()]
) -> Response:
    """Computes all partitions of a view in the background.

    The returned task shows the state of this job. A second request with the same `task_id` starts over.
    """
    return ModelResponse(await services[ViewService].run_all_partitions(scope, view_id, body))


@router.get("/v1/tasks/{task_id:path}", operation_id="get_task_status_v1_tasks__task_id__get", response_model=Task, responses=errors(404))
async def get_task(
    services: ServicesDep, scope: ScopeDep, task_id: Annotated[Identifier, Path(description="The task's id, which may contain `/`.")]
) -> Response:
    """Returns the state of a task. The server keeps tasks for seven days."""
    return ModelResponse(await services[ViewService].read_task(scope, task_id))
