"""Groups of events by day, week and month (pure)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from typing import NamedTuple

from agent_memory.timeline.dates import PRECISIONS
from agent_memory_client.models.features.timeline import Granularity, TimelineEvent, TimelinePeriod


class Period(NamedTuple):
    """A calendar day, ISO week, month or year, its last day included."""

    start: date
    end: date
    name: str


def period_of(day: date, unit: str) -> Period:
    """The `day`, `week`, `month` or `year` that a day is in. Raises KeyError for another unit."""
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


def group_events(events: Sequence[TimelineEvent], granularity: Granularity) -> list[TimelinePeriod]:
    """The events by the period in which they begin, in order; what is known less exactly stands in the longer period that is known."""
    periods: dict[Period, TimelinePeriod] = {}
    for event in events:
        unit = max(granularity, event.precision, key=PRECISIONS.index)
        period = period_of(event.start, unit)
        group = periods.setdefault(period, TimelinePeriod(name=period.name, start=period.start, end=period.end))
        group.events.append(event)
    return [group for _, group in sorted(periods.items())]
