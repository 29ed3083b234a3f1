"""Tasks: background work that a caller can follow by its id."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Response

from agent_memory.api.answers import ModelResponse, errors
from agent_memory.api.deps import RuntimeDep, ScopeDep
from agent_memory.api.operation import operations
from agent_memory_client.models import Identifier, Task

router = operations("summary views")


@router.get("/v1/tasks/{task_id:path}", operation_id="get_task_status_v1_tasks__task_id__get", response_model=Task, responses=errors(404))
async def get_task(
    runtime: RuntimeDep, scope: ScopeDep, task_id: Annotated[Identifier, Path(description="The task's id; it may contain `/`.")]
) -> Response:
    """Where a task stands; it is kept for seven days."""
    return ModelResponse(await runtime.views.task(scope, task_id))
