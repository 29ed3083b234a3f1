"""Find the date of an event."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Literal, TypeAlias

from agent_memory.extensions.profile.self_statements import MOST_READ
from agent_memory.foundation.core.clock import calendar_day, local_time
from agent_memory.foundation.text.dates.named_times import only_time
from agent_memory_client.models import MemoryRecord

Precision: TypeAlias = Literal["day", "week", "month", "year"]
DatedBy: TypeAlias = Literal["event", "text", "said"]
PRECISIONS: Sequence[Precision] = ("day", "week", "month", "year")
"""All precisions, from the finest to the coarsest."""


@dataclass(frozen=True, slots=True)
class EventTime:
    first: date
    last: date | None
    """The event's last day, or None if it has no known end."""
    precision: Precision
    dated_by: DatedBy
    at: datetime | None = None
    """The exact moment, if the time of day is known."""


def event_time(record: MemoryRecord, stated_at: datetime, zone: tzinfo, *, uses_stated_at: bool = False) -> EventTime | None:
    """Return a memory's `event_date`, else the start of its validity, else a time in its text.

    Relative times count from `stated_at`. If no time is available, return the day of `stated_at` if
    `uses_stated_at` is set, or else None.
    """
    named = time_of_text(record.text, stated_at, zone)
    if record.event_date is not None:
        return _of_date(record, record.event_date, named, zone)
    if record.valid_from is not None and record.valid_from != record.created_at:
        return EventTime(calendar_day(record.valid_from, zone), _end(record, zone), "day", "event", _moment(record.valid_from, zone))
    if named is not None:
        return named
    return EventTime(calendar_day(stated_at, zone), calendar_day(stated_at, zone), "day", "said") if uses_stated_at else None


def time_of_text(text: str, stated_at: datetime, zone: tzinfo) -> EventTime | None:
    """Return the time that a statement mentions, or None unless it is clear and the only one."""
    named = only_time(text[:MOST_READ], local_time(stated_at, zone).date())
    if named is None or named.relation not in ("on", "since"):
        return None
    return EventTime(named.first, named.last if named.relation == "on" else None, named.unit, "text")


def _of_date(record: MemoryRecord, event: datetime, named: EventTime | None, zone: tzinfo) -> EventTime:
    first = calendar_day(event, zone)
    if named is not None and named.precision != "day" and named.first == first and _moment(event, zone) is None:
        # The date of "in March 2024" is stored as 2024-03-01; the text shows that the whole month is meant.
        return EventTime(first, named.last, named.precision, "event")
    last = _end(record, zone)
    return EventTime(first, last if last is not None and last > first else first, "day", "event", _moment(event, zone))


def _end(record: MemoryRecord, zone: tzinfo) -> date | None:
    """Return the last day of validity, or None if the memory is still valid or superseded."""
    if record.valid_to is None or record.superseded_by is not None:
        return None
    last = calendar_day(record.valid_to, zone)
    begins_day = record.valid_to == _midnight_of(last, UTC) or record.valid_to == _midnight_of(last, zone)
    first = calendar_day(record.event_date or record.valid_from or record.created_at, zone)
    return max(last - timedelta(days=1) if begins_day else last, first)


def _midnight_of(day: date, zone: tzinfo) -> datetime:
    return datetime.combine(day, time(), zone)


def _moment(event: datetime, zone: tzinfo) -> datetime | None:
    """Return the moment in UTC, or None for midnight, which stands for an entire day."""
    midnights = (local_time(event, where) for where in (zone, UTC))
    return None if any((at.hour, at.minute, at.second, at.microsecond) == (0, 0, 0, 0) for at in midnights) else event.astimezone(UTC)
