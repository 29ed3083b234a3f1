"""Background tasks that a caller can follow."""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel, Field, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from agent_memory_client.models._types import Instant, now


class TaskTypeEnum(StrEnum):
    """What a task does."""

    SUMMARY_VIEW_FULL_RUN = "summary_view_full_run"


class TaskStatusEnum(StrEnum):
    """How far a task is. `COMPLETED` is the name that programs know for success."""

    PENDING = "pending"
    RUNNING = "running"
    SUCCESS = "success"
    FAILED = "failed"
    COMPLETED = "success"  # an alias on purpose

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        json_schema = handler(schema)
        handler.resolve_ref_schema(json_schema)["enum"] = [status.value for status in cls]  # each value once
        return json_schema


TaskStatus = TaskStatusEnum


class Task(BaseModel):
    """A background task; `error_message` tells why it failed."""

    id: str
    """The task's id, the caller's own or a new one."""
    type: TaskTypeEnum
    """What the task does."""
    status: TaskStatusEnum = TaskStatusEnum.PENDING
    """Where it stands; `success` and `failed` are final."""
    view_id: str | None = None
    """The summary view that it computes."""
    created_at: Instant = Field(default_factory=now)
    """When it was ordered."""
    started_at: Instant | None = None
    """When a worker began; null before that."""
    completed_at: Instant | None = None
    """When it ended, well or not; null before that."""
    error_message: str | None = None
    """Why it failed; null when it did not."""
