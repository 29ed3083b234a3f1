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
"""An answer has at most so many events."""

_Facet = Annotated[FreeText, Field(max_length=512)]


class TimelineEvent(BaseModel):
    """Something that happened, or will."""

    id: str
    """The memory that tells it; a message that tells several has one event for each."""
    text: str
    """What happened, as it was told, at most 600 characters of it."""
    start: date
    """The first day, as the user counts days."""
    end: date | None = None
    """The last day, included; null while nothing says that it is over."""
    precision: Literal["day", "week", "month", "year"] = "day"
    """How exactly the time is known: "in March 2024" is from the first to the last of the month, by `month`."""
    at: datetime | None = None
    """The moment, where the time of day is known."""
    dated_by: Literal["event", "text", "said"] = "event"
    """What the time rests on: the memory's own date (`event`), a time that its text names (`text`), or only the day
    it was told (`said`)."""
    who: str | None = None
    """The speaker who told it, where one is named; else the user."""
    topics: list[str] = Field(default_factory=list[str])
    """What it is about."""
    entities: list[str] = Field(default_factory=list[str])
    """The persons, places and things that it names."""
    times_said: int = 1
    """How often it was told."""
    last_said: datetime
    """When it was last told."""
    evidence: list[ProfileEvidence] = Field(default_factory=list[ProfileEvidence])


class PeriodSummary(BaseModel):
    """What happened in a day, a week or a month, in short."""

    text: str
    """The summary, with days and who told what."""
    by: Literal["events", "model"]
    """Whether it is put together from the events themselves, or a language model wrote it."""
    events: int
    """How many events there are in the period."""
    made_at: datetime
    """When it was made."""


class TimelinePeriod(BaseModel):
    """The events of a day, a week or a month; of a longer period, those that are known no more exactly."""

    name: str
    """Such as 2024-03-05, 2024-W10, 2024-03 or 2024."""
    start: date
    """Its first day."""
    end: date
    """Its last day, included."""
    events: list[TimelineEvent] = Field(default_factory=list[TimelineEvent])
    """What began in it, in order."""
    summary: PeriodSummary | None = None
    """What happened in all of the period; null unless `state` is `current`."""
    state: PeriodState | None = None
    """`current`; `open` while the period is not over; `pending` until its summary is made, or made again after a change.
    Null for years, for a topic or an entity, and for the timeline of another time."""


class Timeline(BaseModel):
    """What happened to a user, in one namespace, in the order of its days."""

    user_id: str
    namespace: str | None = None
    total: int = 0
    """How many events there are in the days that were asked for; `offset` reads on."""
    events: list[TimelineEvent] = Field(default_factory=list[TimelineEvent])
    """The events; empty with `granularity`."""
    periods: list[TimelinePeriod] | None = None
    """The events by period; null without `granularity`."""
    as_of: datetime


class TimelineDays(BaseModel):
    """Whose events of which days are meant."""

    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True, serialize_by_alias=True)

    user_id: OptionalIdentifier = None
    """The user; the one of the conversation when not given."""
    namespace: OptionalIdentifier = None
    """The namespace; the one of the conversation when not given."""
    from_: date | None = Field(default=None, alias="from")
    """The first day, such as 2024-03-01."""
    to: date | None = None
    """The last day, included."""
    topic: _Facet | None = None
    """Only what is about this topic."""
    entity: _Facet | None = None
    """Only what names this person, place or thing."""
    limit: Annotated[int, Field(ge=1, le=MAX_EVENTS)] = 100
    """At most so many events."""


class TimelineQuery(TimelineDays):
    """Which events are meant, of which time, and how they are grouped."""

    granularity: Granularity | None = None
    """Group the events by `day`, `week` or `month`."""
    offset: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    """Leave out so many of the first."""
    as_of: datetime | None = None
    """The timeline as it was at this time; now when not given."""
    known_at: datetime | None = None
    """By what was known at this time."""
    timezone: Annotated[str, Field(max_length=64)] | None = None
    """The time zone of the days, such as `Europe/Berlin`; the user's when not given."""


class TimelineInPrompt(BaseModel):
    """How much of the user's timeline a prompt shows."""

    tokens: Annotated[int, Field(ge=32, le=4000)] = 300
