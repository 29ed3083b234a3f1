"""Summary views: summaries of memories per group of field values, kept up to date on request or in the background."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, Field

from agent_memory_client.models._types import AnyObject, FreeText, Identifier, Instant, now


class SummaryViewSource(StrEnum):
    """Where a view's memories come from."""

    LONG_TERM = "long_term"
    WORKING_MEMORY = "working_memory"


def _no_object_as_empty(value: Any) -> Any:
    return {} if value is None else value


def _none_as_false(value: Any) -> Any:
    return False if value is None else value


class CreateSummaryViewRequest(BaseModel):
    """A view to make: which memories (`filters`, `time_window_days`), how they are grouped, and who writes the summary."""

    name: FreeText | None = None
    source: Literal["long_term", "working_memory"]
    group_by: list[FreeText] = Field(default_factory=list[str])
    filters: Annotated[AnyObject, BeforeValidator(_no_object_as_empty)] = Field(default_factory=dict[str, Any])
    time_window_days: Annotated[int, Field(ge=1, le=36_500)] | None = None
    continuous: Annotated[bool, BeforeValidator(_none_as_false)] = False
    prompt: FreeText | None = None
    model_name: FreeText | None = None


class SummaryView(CreateSummaryViewRequest):
    """A stored view."""

    id: str


class RunSummaryViewRequest(BaseModel):
    """A full run of a view, under a task id of the caller's or a new one."""

    task_id: Identifier | None = None


class RunSummaryViewPartitionRequest(BaseModel):
    """One partition to compute now: a value for every field in the view's `group_by`."""

    group: dict[FreeText, FreeText]


class SummaryViewPartitionResult(BaseModel):
    """The summary of one partition; an empty one says why in `empty_reason`, one without the language model why in `degraded`."""

    view_id: str
    group: dict[FreeText, FreeText]
    summary: str = ""
    memory_count: Annotated[int, Field(ge=0)]
    empty: bool = False
    empty_reason: str | None = None
    degraded: str | None = None
    computed_at: Instant = Field(default_factory=now)
