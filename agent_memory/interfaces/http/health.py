"""Serve health, readiness and metrics for operators."""

from __future__ import annotations

import math
import time
from typing import Any

from fastapi import Response

from agent_memory.foundation.api.dependencies import AuthenticatedDep, StoppingDep
from agent_memory.foundation.api.operation import operations
from agent_memory.foundation.api.responses import JsonResponse, ModelResponse, errors
from agent_memory.foundation.core import metrics
from agent_memory.foundation.core.errors import Unavailable
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.foundation.storage.store_watch import Problem
from agent_memory.interfaces.opened_runtime import HomeDep
from agent_memory.runtime import Runtime
from agent_memory_client.models import ErrorResponse, HealthCheckResponse

router = operations("operations")

_STOPPING = Problem("stopping", "the process is stopping: use another one")
_READY_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["ready", "checks"],
    "properties": {
        "ready": {"type": "boolean", "description": "Whether the server can take requests. Always true with status 200."},
        "checks": {
            "type": "object",
            "description": "The state of each component, such as `redis`, `models` and waiting `work`. Empty for unauthenticated callers.",
        },
    },
}
_READY: dict[int | str, dict[str, Any]] = {
    200: {"description": "Ready.", "content": {"application/json": {"schema": _READY_SCHEMA}}},
    503: {"description": "Not ready. `problems` explains why.", "model": ErrorResponse},
}
_METRICS: dict[int | str, dict[str, Any]] = {
    **errors(),
    200: {"description": "Prometheus text format.", "content": {"text/plain": {"schema": {"type": "string"}}}},
}


@router.get("/v1/health", operation_id="get_health_v1_health_get", response_model=HealthCheckResponse)
async def get_health() -> Response:
    """Returns 200 while the process is responding.

    Checks nothing else and needs no authentication.
    """
    return ModelResponse(HealthCheckResponse(now=time.time_ns() // 1_000_000))


@router.get("/v1/ready", operation_id="get_ready_v1_ready_get", response_model=None, responses=_READY)
async def get_ready(runtime: HomeDep, is_authenticated: AuthenticatedDep, stopping: StoppingDep) -> Response:
    """Return 200 if the server is ready, else 503.

    Authenticated callers also get the status of each component.
    """
    readiness = await runtime.ready()
    body: dict[str, Any] = {"ready": readiness.ok, "checks": readiness.checks if is_authenticated else {}}
    if readiness.ok and not stopping:
        return JsonResponse(body)
    body["ready"] = False
    problems = ((_STOPPING,) if stopping else ()) + readiness.problems if is_authenticated else ()
    body["problems"] = [{"code": problem.code, "detail": problem.message} for problem in problems]
    body["detail"] = "; ".join(["not ready", *(problem.message for problem in problems)])
    body["code"] = problems[0].code if problems else Unavailable.code
    return JsonResponse(body, 503, {"Retry-After": "1"})


@router.get("/metrics", operation_id="get_metrics_metrics_get", response_model=None, response_class=Response, responses=_METRICS)
async def get_metrics(runtime: HomeDep) -> Response:
    """Return all metrics in the Prometheus text format."""
    await _measure_outbox(runtime)
    return Response(metrics.render(), media_type=metrics.CONTENT_TYPE)


async def _measure_outbox(runtime: Runtime) -> None:
    """Set the outbox gauges (NaN if Redis is unavailable)."""
    try:
        backlogs = await runtime.backlog()
    except Unavailable:
        backlogs = {}
    for kind in DueKind:
        backlog = backlogs.get(kind)
        metrics.OUTBOX_PENDING.labels(kind.value).set(backlog.pending if backlog else math.nan)
        metrics.OUTBOX_DEAD.labels(kind.value).set(backlog.dead if backlog else math.nan)
        metrics.OUTBOX_OLDEST_SECONDS.labels(kind.value).set(backlog.oldest_seconds if backlog else math.nan)
