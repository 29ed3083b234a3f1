"""Create the lines of a prompt's timeline section."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta, tzinfo
from typing import Any, NamedTuple

from agent_memory.extensions.timeline.event_time import PRECISIONS
from agent_memory.extensions.timeline.periods import Period, day_number, day_of, period_key, period_of, period_of_key
from agent_memory.extensions.timeline.summaries.digest import event_line, weightiest
from agent_memory.foundation.core.clock import local_time
from agent_memory.foundation.text.dates.question_time import Span
from agent_memory_client.models.features.timeline import Granularity

# For at most this many days, show each event. For a longer range, show summaries of periods.
_FEW_DAYS = 7
# Read only the latest periods in a range, at most this many.
_MOST_PERIODS = 24
_LATEST = {"day": 7, "week": 4, "month": 6}
_WEEK = re.compile(r"\d{4}-W(0[1-9]|[1-4]\d|5[0-3])", re.ASCII)

Line = tuple[str, str]
"""A prompt line, as (day to sort by, text)."""


class NamedDays(NamedTuple):
    """A range of days, in days since 1970. Both ends are inclusive; None means no limit."""

    first: int | None
    last: int | None

    def hold(self, first: int, last: int | None) -> bool:
        """True if the range overlaps these days. None means no end."""
        return (self.last is None or first <= self.last) and (self.first is None or last is None or last >= self.first)

    def contain(self, period: Period) -> bool:
        """True if the range covers the entire period."""
        first, last = day_number(period.start), day_number(period.end)
        return (self.first is None or first >= self.first) and (self.last is None or last <= self.last)

    def tell(self, event: dict[str, Any]) -> bool:
        """True if an event overlaps the range and has a precise enough date."""
        start = date.fromisoformat(event["start"])
        first, last = day_number(start), None if event["end"] is None else day_number(date.fromisoformat(event["end"]))
        if not self.hold(first, last):
            return False
        period = period_of(start, event["precision"])
        longer = self.first is not None and self.last is not None and (period.end - period.start).days > self.last - self.first
        return not (longer and last == day_number(period.end))

    @property
    def unit(self) -> Granularity | None:
        """The unit of the summaries to show, or None to show individual events."""
        if self.first is None or self.last is None:
            return "month"
        if self.last - self.first < _FEW_DAYS:
            return None
        month = period_of(day_of(self.first), "month")
        following = period_of(month.end + timedelta(days=1), "month")
        return "month" if self.contain(month) or self.contain(following) else "week"


def days_of_span(span: Span, zone: tzinfo) -> NamedDays:
    """Return the days in `zone` that a question asks about."""
    first = None if span.start.year <= 2 else day_number(span.start.astimezone(zone).date())
    last = None if span.end.year >= 9998 else day_number((span.end - timedelta(microseconds=1)).astimezone(zone).date())
    return NamedDays(first, last)


def periods_within(days: NamedDays, *, margin: int) -> list[str]:
    """Return the keys of the periods to show, latest first. `margin` adds days at both ends."""
    if days.first is None or days.last is None or days.unit is None:
        return []
    wider = NamedDays(days.first - margin, days.last + margin)
    keys: list[str] = []
    day: date = day_of(days.last + margin)
    for _ in range(_MOST_PERIODS):
        period = period_of(day, days.unit)
        if not wider.hold(day_number(period.start), day_number(period.end)):
            break
        keys.append(period_key(period, days.unit))
        day = period.start - timedelta(days=1)
    return keys


def in_zone(event: dict[str, Any], zone: tzinfo) -> dict[str, Any]:
    """Move a one-day event with an exact time to its day in `zone`."""
    if event.get("at") is None or event["start"] != event["end"]:
        return event
    day = local_time(datetime.fromisoformat(event["at"]), zone).date().isoformat()
    return {**event, "start": day, "end": day}


def lines_of_days(days: NamedDays, events: Sequence[dict[str, Any]], summaries: Mapping[str, dict[str, Any]]) -> list[Line]:
    """Return the summaries, latest first, followed by the other events by weight."""
    unit, periods, lines = days.unit, list[Period](), list[Line]()
    for key in sorted(summaries, key=lambda key: -int(key[1:])):
        period, of = period_of_key(key)
        if of == unit and days.contain(period):
            periods.append(period)
            lines += _summary_lines(period, summaries[key])
    for event in weightiest(events):
        if days.tell(event):
            first = date.fromisoformat(event["start"])
            fits_period = unit is not None and PRECISIONS.index(event["precision"]) <= PRECISIONS.index(unit)
            if not (fits_period and any(period.start <= first <= period.end for period in periods)):
                line = event_line(event)
                lines.append((_day_of_line(line), f"- {line}"))
    return lines


def lines_of_latest(summaries: Mapping[str, dict[str, Any]]) -> list[Line]:
    """Return the summaries of the latest days, weeks and months, without overlaps."""
    lines: list[Line] = []
    listed_periods: list[Period] = []
    for unit, most in _LATEST.items():
        keys = sorted((key for key in summaries if key[0] == unit[0]), key=lambda key: -int(key[1:]))
        periods = [(key, period_of_key(key)[0]) for key in keys]
        others = [
            (key, period) for key, period in periods if not any(period.start <= other.start <= period.end for other in listed_periods)
        ]
        for key, period in others[:most]:
            listed_periods.append(period)
            lines += _summary_lines(period, summaries[key])
    return lines


def _summary_lines(period: Period, summary: dict[str, Any]) -> list[Line]:
    if summary["by"] == "model":
        return [(period.start.isoformat(), f"- {period.name}: {' '.join(summary['text'].split())}")]
    return [(_day_of_line(line), f"- {line}") for line in summary["text"].split("\n")]


def _day_of_line(line: str) -> str:
    """Return the day by which to sort a digest line. "2024-03" sorts before that month's days."""
    days = line.removeprefix("since ").partition(":")[0][:10]
    if not _WEEK.fullmatch(days):
        return days
    return date.fromisocalendar(int(days[:4]), int(days[-2:]), 1).isoformat()
