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
        found = handler(schema)
        handler.resolve_ref_schema(found)["enum"] = [status.value for status in cls]  # each value once
        return found


TaskStatus = TaskStatusEnum


class Task(BaseModel):
    """A background task; `error_message` tells why it failed."""

    id: str
    type: TaskTypeEnum
    status: TaskStatusEnum = TaskStatusEnum.PENDING
    view_id: str | None = None
    created_at: Instant = Field(default_factory=now)
    started_at: Instant | None = None
    completed_at: Instant | None = None
    error_message: str | None = None
