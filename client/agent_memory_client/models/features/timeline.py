"""A user's timeline of events."""

from __future__ import annotations

from datetime import date, datetime
from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from agent_memory_client.models._types import FreeText, OptionalIdentifier
from agent_memory_client.models.features.profile import ProfileEvidence

Granularity: TypeAlias = Literal["day", "week", "month"]

PeriodState: TypeAlias = Literal["open", "pending", "current"]

MAX_EVENTS = 500
"""The maximum number of events in a response."""

_Facet = Annotated[FreeText, Field(max_length=512)]


class TimelineEvent(BaseModel):
    """A past or future event."""

    id: str
    """The id of the memory that describes the event. One message may describe several events."""
    text: str
    """The memory's text, at most 600 characters."""
    start: date
    """The first day of the event, in the user's time zone."""
    end: date | None = None
    """The last day of the event, inclusive. Null if the end is unknown."""
    precision: Literal["day", "week", "month", "year"] = "day"
    """How precise the time is. "In March 2024" has the precision `month`, and lasts from the first to the last day of
    that month."""
    at: datetime | None = None
    """The exact time, if the time of day is known."""
    dated_by: Literal["event", "text", "said"] = "event"
    """Where the time comes from: the memory's own date (`event`), a time in its text (`text`), or the day of the
    message (`said`)."""
    who: str | None = None
    """The speaker, if the memory names one. Null means the user."""
    topics: list[str] = Field(default_factory=list[str])
    """The event's topics."""
    entities: list[str] = Field(default_factory=list[str])
    """The people, places and things in the event."""
    times_said: int = 1
    """The number of times the event was mentioned."""
    last_said: datetime
    """The time when the event was last mentioned."""
    evidence: list[ProfileEvidence] = Field(default_factory=list[ProfileEvidence])


class PeriodSummary(BaseModel):
    """A summary of the events in a day, week or month."""

    text: str
    """The summary, with days and speakers."""
    by: Literal["events", "model"]
    """How the summary was made: `events` if it was extracted from the events, `model` if a language model wrote it."""
    events: int
    """The number of events in the period."""
    made_at: datetime
    """The time when the summary was made."""


class TimelinePeriod(BaseModel):
    """The events in a day, week or month. Events with imprecise times can extend the period."""

    name: str
    """The period: 2024-03-05, 2024-W10, 2024-03 or 2024."""
    start: date
    """The first day of the period."""
    end: date
    """The last day of the period, inclusive."""
    events: list[TimelineEvent] = Field(default_factory=list[TimelineEvent])
    """The events that began in the period, in chronological order."""
    summary: PeriodSummary | None = None
    """The summary of the whole period. Null unless `state` is `current`."""
    state: PeriodState | None = None
    """The state of the summary. `current`: it is up to date. `open`: the period is not over. `pending`: a worker still
    has to create or update it. Null for years, for requests with a topic or entity, and for a different time or time
    zone."""


class Timeline(BaseModel):
    """A user's events in one namespace, sorted by day."""

    user_id: str
    namespace: str | None = None
    total: int = 0
    """The number of events on the requested days. Use `offset` to get the next page."""
    events: list[TimelineEvent] = Field(default_factory=list[TimelineEvent])
    """The events. Empty if `granularity` is given."""
    periods: list[TimelinePeriod] | None = None
    """The events by period. Null unless `granularity` is given."""
    as_of: datetime


class TimelineDays(BaseModel):
    """The user and the days to read."""

    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True, serialize_by_alias=True)

    user_id: OptionalIdentifier = None
    """The user. Default: the conversation's user."""
    namespace: OptionalIdentifier = None
    """The namespace. Default: the conversation's namespace."""
    from_: date | None = Field(default=None, alias="from")
    """The first day, such as 2024-03-01."""
    to: date | None = None
    """The last day, inclusive."""
    topic: _Facet | None = None
    """Only events about this topic."""
    entity: _Facet | None = None
    """Only events that mention this person, place or thing."""
    limit: Annotated[int, Field(ge=1, le=MAX_EVENTS)] = 100
    """The maximum number of events, at most 500."""


class TimelineQuery(TimelineDays):
    """Which events to select and how to group them, as of a given time."""

    granularity: Granularity | None = None
    """Group the events by `day`, `week` or `month`."""
    offset: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    """The number of events to skip."""
    as_of: datetime | None = None
    """Return the timeline as of this time. Default: now."""
    known_at: datetime | None = None
    """Use only memories that the server knew at this time."""
    timezone: Annotated[str, Field(max_length=64)] | None = None
    """The time zone of the days, such as `Europe/Berlin`. Default: the user's time zone."""


class TimelineInPrompt(BaseModel):
    """The maximum size in tokens of the user's timeline in a prompt."""

    tokens: Annotated[int, Field(ge=32, le=4000)] = 300
