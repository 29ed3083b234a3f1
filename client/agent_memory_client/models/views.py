"""Summary views: summaries of groups of memories, updated on demand or in the background."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, Field

from agent_memory_client.models._types import AnyObject, FreeText, Identifier, Instant, now


class SummaryViewSource(StrEnum):
    """The source of a view's memories."""

    LONG_TERM = "long_term"
    WORKING_MEMORY = "working_memory"


class CreateSummaryViewRequest(BaseModel):
    """A view to create: which memories to summarize, how to group them, and with which model."""

    name: FreeText | None = None
    """A human-readable name."""
    source: Literal["long_term", "working_memory"]
    """Where the memories come from. Only `long_term` is supported."""
    group_by: list[FreeText] = Field(default_factory=list[str])
    """The fields to group by: `user_id`, `namespace`, `session_id`, `memory_type`. Each group has its own summary. If
    the list is empty, there is one summary of all memories."""
    filters: Annotated[AnyObject, BeforeValidator(lambda value: {} if value is None else value)] = Field(default_factory=dict[str, Any])
    """Conditions for the memories, by field: a value, a list of values, or operators as in a search, such as
    `{"topics": {"any": ["travel"]}}`."""
    time_window_days: Annotated[int, Field(ge=1, le=36_500)] | None = None
    """Include only memories created in the last `time_window_days` days, at most 36,500. Default: all memories."""
    continuous: Annotated[bool, BeforeValidator(lambda value: False if value is None else value)] = False
    """True if the server keeps the summaries up to date in the background."""
    prompt: FreeText | None = None
    """Instructions for the language model. Default: a general summary."""
    model_name: FreeText | None = None
    """The language model that writes the summaries. Default: the server's model."""


class SummaryView(CreateSummaryViewRequest):
    """A summary view."""

    id: str


class RunSummaryViewRequest(BaseModel):
    """A request to compute all partitions of a view."""

    task_id: Identifier | None = None
    """The id to track the task by. By default, the server generates one."""


class RunSummaryViewPartitionRequest(BaseModel):
    """The partition to compute now, with a value for each field in the view's `group_by`."""

    group: dict[FreeText, FreeText]
    """A value for every field in the view's `group_by`: `{"user_id": "ada"}`."""


class SummaryViewPartitionResult(BaseModel):
    """The summary of all memories that have the values in `group`."""

    view_id: str
    """The view that the summary belongs to."""
    group: dict[FreeText, FreeText]
    """The values that the memories have in common, by field."""
    summary: str = ""
    """The summary. Empty if no memories match."""
    memory_count: Annotated[int, Field(ge=0)]
    """The number of matching memories."""
    empty: bool = False
    """True if there was nothing to summarize."""
    empty_reason: str | None = None
    """Why the summary is empty: `no_matching_memories`. Otherwise null."""
    degraded: str | None = None
    """Why the language model did not write the summary. In that case, the summary lists the most informative memories.
    Null if the model wrote it."""
    computed_at: Instant = Field(default_factory=now)
    """The time when the summary was made."""
