"""Calculate calendar periods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import NamedTuple

from agent_memory.extensions.timeline.event_time import PRECISIONS, Precision
from agent_memory_client.models.features.timeline import Granularity, PeriodState, PeriodSummary, TimelineEvent, TimelinePeriod

UNITS: Sequence[Granularity] = ("day", "week", "month")
"""The units that have summaries, shortest first."""
_EPOCH = date(1970, 1, 1)


class Period(NamedTuple):
    """A calendar day, ISO week, month or year. `end` is its last day."""

    start: date
    end: date
    name: str


class SummaryState(NamedTuple):
    state: PeriodState | None = None
    summary: PeriodSummary | None = None


def period_of(day: date, unit: str) -> Period:
    """Return the "day", "week", "month" or "year" that contains a day. Raises KeyError for any other `unit`."""
    year, week, weekday = day.isocalendar()
    monday = day - timedelta(days=min(weekday - 1, day.toordinal() - 1))
    sunday = monday + timedelta(days=min(6, date.max.toordinal() - monday.toordinal()))
    first = day.replace(day=1)
    last = date(day.year, 12, 31) if day.month == 12 else day.replace(month=day.month + 1, day=1) - timedelta(days=1)
    return {
        "day": Period(day, day, day.isoformat()),
        "week": Period(monday, sunday, f"{year:04d}-W{week:02d}"),
        "month": Period(first, last, f"{day:%Y-%m}"),
        "year": Period(date(day.year, 1, 1), date(day.year, 12, 31), f"{day:%Y}"),
    }[unit]


def day_number(day: date) -> int:
    """Convert a date to days since 1970."""
    return (day - _EPOCH).days


def day_of(number: int) -> date:
    """Convert days since 1970 to a date. Raises OverflowError."""
    return _EPOCH + timedelta(days=number)


def period_key(period: Period, unit: str) -> str:
    """Return a period's key: the unit's letter and the first day in days since 1970, such as "w19783"."""
    return f"{unit[0]}{day_number(period.start)}"


def period_of_key(key: str) -> tuple[Period, Granularity]:
    """Parse a key into its period and unit. Raises ValueError."""
    for unit in UNITS:
        if key[:1] == unit[0]:
            return period_of(day_of(int(key[1:])), unit), unit
    raise ValueError(f"{key[:20]!r} names no period")


def closing_time(period: Period, zone: tzinfo) -> int:
    """Return the Unix time of the midnight in `zone` after a period's last day."""
    if not 1900 <= period.end.year < 9999:
        zone = UTC  # Time zones are unknown for such years.
    offset = datetime.combine(period.end, time(12), zone).utcoffset() or timedelta()
    return (day_number(period.end) + 1) * 86_400 - int(offset.total_seconds())


def periods_of_event(first: date, precision: Precision, zone: tzinfo) -> list[tuple[str, int]]:
    """Return the periods in which an event begins, as (period key, Unix time of the end).

    Omit units finer than the event's precision.
    """
    periods = [(unit, period_of(first, unit)) for unit in UNITS if PRECISIONS.index(unit) >= PRECISIONS.index(precision)]
    return [(period_key(period, unit), closing_time(period, zone)) for unit, period in periods]


def group_events(events: Sequence[TimelineEvent], granularity: Granularity, summaries: Mapping[str, SummaryState]) -> list[TimelinePeriod]:
    """Group events by the period in which they begin.

    Less precise events get longer periods. The keys of `summaries` are period keys.
    """
    periods: dict[Period, TimelinePeriod] = {}
    for event in events:
        unit = max(granularity, event.precision, key=PRECISIONS.index)
        period = period_of(event.start, unit)
        if period not in periods:
            state = summaries.get(period_key(period, unit)) or SummaryState()
            periods[period] = TimelinePeriod(name=period.name, start=period.start, end=period.end, summary=state.summary, state=state.state)
        group = periods[period]
        group.events.append(event)
    return [group for _, group in sorted(periods.items())]
