"""Background tasks with progress reports."""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel, Field, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from agent_memory_client.models._types import Instant, now


class TaskTypeEnum(StrEnum):
    """The type of task."""

    SUMMARY_VIEW_FULL_RUN = "summary_view_full_run"


class TaskStatusEnum(StrEnum):
    """A task's state. `COMPLETED` is an alias for `SUCCESS`, for older clients."""

    PENDING = "pending"
    RUNNING = "running"
    SUCCESS = "success"
    FAILED = "failed"
    COMPLETED = "success"  # An alias of `SUCCESS`.

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        json_schema = handler(schema)
        handler.resolve_ref_schema(json_schema)["enum"] = [status.value for status in cls]  # Without the alias.
        return json_schema


TaskStatus = TaskStatusEnum


class Task(BaseModel):
    """A background task."""

    id: str
    """The task's id: the id from the request, or a new one."""
    type: TaskTypeEnum
    """The kind of task."""
    status: TaskStatusEnum = TaskStatusEnum.PENDING
    """The task's state. `success` and `failed` are final."""
    view_id: str | None = None
    """The summary view that the task computes."""
    created_at: Instant = Field(default_factory=now)
    """The time when the task was requested."""
    started_at: Instant | None = None
    """The time when a worker started the task. Null if no worker has started it."""
    completed_at: Instant | None = None
    """The time when the task ended, successfully or not. Null if it has not ended."""
    error_message: str | None = None
    """Why the task failed. Null if it did not fail."""
