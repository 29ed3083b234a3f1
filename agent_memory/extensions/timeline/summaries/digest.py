"""Summarize a period by listing its main events, without using a model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from typing import Any

from agent_memory.extensions.timeline.event_time import PRECISIONS
from agent_memory.extensions.timeline.events import MOST_WEIGHED
from agent_memory.extensions.timeline.periods import period_of
from agent_memory.foundation.text.cleaning.control_characters import cut

_MOST_LINES = {"day": 6, "week": 10, "month": 16}
_LINE_CHARS = 240
_DATED = ("event", "text", "said")
_DAY = re.compile(r"(since )?\d{4}-\d\d-\d\d", re.ASCII)


def event_line(event: dict[str, Any]) -> str:
    """Format an event as a line such as "2024-03-03: I flew to Rome (said by ada)"."""
    text = " ".join(event["text"].split())
    speaker = f" (said by {' '.join(event['who'].split())})" if event.get("who") else ""
    return f"{shown_days(event)}: {cut(text, _LINE_CHARS)}{speaker}"


def shown_days(event: dict[str, Any]) -> str:
    """Format an event's days: "2024-03-03", "2024-03", "2024-03-01 to 2024-03-05", or "since 2020-01-01"."""
    start, end = event["start"], event["end"]
    if end is None:
        return f"since {start}"
    precision = event.get("precision", "day")
    if precision != "day":
        period = period_of(date.fromisoformat(start), precision)
        if (period.start.isoformat(), period.end.isoformat()) == (start, end):
            return period.name
    return start if start == end else f"{start} to {end}"


def weightiest(events: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Sort events by mentions, date certainty, precision and start."""
    return sorted(
        events,
        key=lambda event: (
            -min(event["times_said"], MOST_WEIGHED),
            _DATED.index(event["dated_by"]),
            PRECISIONS.index(event["precision"]),
            event["start"],
        ),
    )


def digest_of(unit: str, events: Sequence[dict[str, Any]], days: Sequence[tuple[str, str]] = ()) -> str:
    """Return a period's most important events, one line each, sorted by day.

    `days` are (name, summary) pairs. The first line of each day takes precedence.
    """
    ranked = [(event["start"], event_line(event)) for event in weightiest(events)]
    texts = [(name, _lines(name, text)) for name, text in days]
    for rank in range(max((len(lines) for _, lines in texts), default=0)):
        ranked += [(name, lines[rank]) for name, lines in texts if rank < len(lines)]
    top_lines = sorted(enumerate(ranked[: _MOST_LINES[unit]]), key=lambda item: (item[1][0], item[0]))
    return "\n".join(line for _, (_, line) in top_lines)


def _lines(name: str, text: str) -> list[str]:
    """Split a day's summary into lines that start with a date."""
    lines = [line for line in text.split("\n") if line.strip()]
    return [line if _DAY.match(line) else f"{name}: {line}" for line in lines]
