"""Summary views: summaries of memories by groups, updated on request or in the background."""

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
    """A name for people to know it by."""
    source: Literal["long_term", "working_memory"]
    """Where the memories come from; only `long_term` is supported."""
    group_by: list[FreeText] = Field(default_factory=list[str])
    """The fields whose values make the groups, each with a summary of its own: `user_id`, `namespace`, `session_id`,
    `memory_type`. One summary of all when empty."""
    filters: Annotated[AnyObject, BeforeValidator(_no_object_as_empty)] = Field(default_factory=dict[str, Any])
    """Which memories count, by field: a value, a list of values, or operators as in a search, such as `{"topics":
    {"any": ["travel"]}}`."""
    time_window_days: Annotated[int, Field(ge=1, le=36_500)] | None = None
    """Only memories that were made in the last so many days; all when not given."""
    continuous: Annotated[bool, BeforeValidator(_none_as_false)] = False
    """Whether the server keeps the summaries up to date by itself, in the background."""
    prompt: FreeText | None = None
    """What the summary is to say, in words for the language model; a general summary when not given."""
    model_name: FreeText | None = None
    """The language model that writes it; the server's when not given."""


class SummaryView(CreateSummaryViewRequest):
    """A stored view."""

    id: str


class RunSummaryViewRequest(BaseModel):
    """A full run of a view, under a task id of the caller's or a new one."""

    task_id: Identifier | None = None
    """An id for the task to follow it by; one is made when it is left out."""


class RunSummaryViewPartitionRequest(BaseModel):
    """One partition to compute now: a value for every field in the view's `group_by`."""

    group: dict[FreeText, FreeText]
    """A value for each field of the view's `group_by`: `{"user_id": "ada"}`."""


class SummaryViewPartitionResult(BaseModel):
    """The summary of one partition."""

    view_id: str
    """The view that it belongs to."""
    group: dict[FreeText, FreeText]
    """The values that its memories share, by field."""
    summary: str = ""
    """The summary; empty when no memory matches."""
    memory_count: Annotated[int, Field(ge=0)]
    """How many memories match."""
    empty: bool = False
    """Whether there was nothing to summarize."""
    empty_reason: str | None = None
    """Why it is empty: `no_matching_memories`; null when it is not."""
    degraded: str | None = None
    """Why it was made without the language model, of the memories that tell most; null when the model wrote it."""
    computed_at: Instant = Field(default_factory=now)
    """When it was made."""
