"""When something happened: of a memory's own date, or of the time that its words name (pure)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Literal, TypeAlias

from agent_memory.core.clock import calendar_day
from agent_memory.profile.self_statements import MOST_READ
from agent_memory.text.time_expressions import Span, named_time
from agent_memory_client.models import MemoryRecord

Precision: TypeAlias = Literal["day", "week", "month", "year"]
DatedBy: TypeAlias = Literal["event", "text", "said"]
PRECISIONS: Sequence[Precision] = ("day", "week", "month", "year")
"""From the finest on."""

# What never ends, or began before anybody knows, is named by the last and the first of all days.
_OPEN_YEAR, _FIRST_YEAR = 9999, 2
_FIRST_OF_MONTH = re.compile(r"\b0?1(?:st|\.)?\b")
# What happens on each such day happened on none in particular.
_EACH = re.compile(
    r"\b(?:every|each|jede[nrsm]?|chaque|tou(?:s|tes) les|cada|todos (?:los|os)|todas (?:las|as)|ogni|tutt[ie] (?:i|le|gli)"
    r"|elke?|iedere?)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class EventTime:
    """The days of an event, as its user counts them."""

    first: date
    last: date | None
    """The last day, included; None while nothing says that it is over."""
    precision: Precision
    dated_by: DatedBy
    at: datetime | None = None
    """The moment, where the time of day is known."""


def event_time(record: MemoryRecord, said: datetime, zone: tzinfo, *, said_counts: bool = False) -> EventTime | None:
    """The time of what a memory tells: its `event_date`, else its validity, else what its text names as of `said`.

    None where none of them says it; with `said_counts` it then happened on the day that it was told.
    """
    named = time_of_text(record.text, said, zone)
    if record.event_date is not None:
        return _of_date(record, record.event_date, named, zone)
    if record.valid_from is not None and record.valid_from != record.created_at:
        return EventTime(calendar_day(record.valid_from, zone), _end(record, zone), "day", "event", _moment(record.valid_from, zone))
    if named is not None:
        return named
    return EventTime(calendar_day(said, zone), calendar_day(said, zone), "day", "said") if said_counts else None


def time_of_text(text: str, said: datetime, zone: tzinfo) -> EventTime | None:
    """The time that a statement names, in `zone` and as of the moment that it was said; None for none, and for what happens each Monday.

    Of a day that may lie behind or ahead ("on 3 March") the one behind is meant, unless the words look ahead.
    """
    text = text[:MOST_READ]
    span = named_time(text, said, zone)
    if span is None or span.start.year <= _FIRST_YEAR or _EACH.search(text) is not None:
        return None
    first, last = calendar_day(span.start, zone), calendar_day(span.end - timedelta(microseconds=1), zone)
    return EventTime(first, None if span.end.year >= _OPEN_YEAR else last, _precision(span, first, last), "text")


def _precision(span: Span, first: date, last: date) -> Precision:
    words, after = span.words.lower(), last + timedelta(days=1) if last < date.max else last
    if span.end.year >= _OPEN_YEAR or words.startswith(("from ", "between ")):
        # Two ends, each as exact as it was named.
        if first.day == 1 and (span.end.year >= _OPEN_YEAR or after.day == 1) and _FIRST_OF_MONTH.search(words) is None:
            return "year" if first.month == 1 and (span.end.year >= _OPEN_YEAR or after.month == 1) else "month"
        return "day"
    days = (last - first).days + 1
    return "day" if days == 1 else "week" if days <= 7 else "month" if days <= 31 else "year"


def _of_date(record: MemoryRecord, event: datetime, named: EventTime | None, zone: tzinfo) -> EventTime:
    first = calendar_day(event, zone)
    wider = named is not None and named.precision != "day" and named.first == first and _moment(event, zone) is None
    if wider and named is not None:
        # "In March 2024" is stored as its first day.
        return EventTime(first, named.last, named.precision, "event")
    last = _end(record, zone)
    return EventTime(first, last if last is not None and last > first else first, "day", "event", _moment(event, zone))


def _end(record: MemoryRecord, zone: tzinfo) -> date | None:
    """The last day of what a memory tells; None for what is not over, and for what another memory took the place of."""
    if record.valid_to is None or record.superseded_by is not None:
        return None
    last = calendar_day(record.valid_to, zone)
    begins_day = record.valid_to == _midnight_of(last, UTC) or record.valid_to == _midnight_of(last, zone)
    first = calendar_day(record.event_date or record.valid_from or record.created_at, zone)
    return max(last - timedelta(days=1) if begins_day else last, first)


def _midnight_of(day: date, zone: tzinfo) -> datetime:
    return datetime.combine(day, time(), zone)


def _moment(event: datetime, zone: tzinfo) -> datetime | None:
    """The moment, unless it is the beginning of a day, which is how days are stored."""
    midnights = (event.astimezone(where) for where in (zone, UTC))
    return None if any((at.hour, at.minute, at.second, at.microsecond) == (0, 0, 0, 0) for at in midnights) else event.astimezone(UTC)
