"""Format a memory as a prompt line. Pure functions, no I/O."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo

from agent_memory.features.memories.shown_memories import ShownMemory
from agent_memory.features.recall.line_escaping import one_line, shown_id
from agent_memory.foundation.core.clock import as_in_zone, local_time
from agent_memory.foundation.text.retrieval_units import day
from agent_memory_client.models import SearchRequest

LINE_TOKENS = 22
"""Tokens in a line, excluding its text and id."""
ID_TOKENS = 22
_MOST_NAME = 64


@dataclass(slots=True)
class LineStyle:
    """How to format prompt lines. Dates are relative to `now` in the time zone `zone`."""

    now: datetime
    zone: tzinfo
    ids: bool = True

    @classmethod
    def of_search(cls, request: SearchRequest, zone: tzinfo = UTC, *, ids: bool = True) -> LineStyle:
        return cls(local_time(request.reference_time or datetime.now(UTC), zone), zone, ids)


def ago(moment: datetime, now: datetime) -> str:
    """Describe the time between two dates in words, such as "3 days ago"."""
    days = (now.date() - moment.date()).days
    if days == 0:
        return "today"
    size = abs(days)
    unit, length = ("day", 1.0) if size < 14 else ("week", 7.0) if size < 60 else ("month", 30.44) if size < 730 else ("year", 365.25)
    count = max(int(size / length), 1)
    words = f"{count} {unit}{'' if count == 1 else 's'}"
    return f"{words} ago" if days > 0 else f"in {words}"


def memory_line(
    memory: ShownMemory, style: LineStyle, date: datetime, *, latest: bool = False, asks: bool = False, passage: str | None = None
) -> str:
    """Format a memory as a prompt line.

    `date` is the memory's `line_date`. `latest` marks the last of several contradictory statements.
    `asks` marks a message that only asks a question. `passage` replaces text that is too long.
    """
    when = as_in_zone(date, style.zone)
    marks = [day(when), ago(when, style.now)]
    if memory.times_said > 1:
        marks.append(f"said {memory.times_said} times")
    if (since := no_longer_true_since(memory)) is not None:
        marks.append(f"no longer true since {day(as_in_zone(since, style.zone))}")
    elif latest:
        marks.append("latest")
    text = one_line(memory.text if passage is None else passage)
    identity = f" (ID: {shown_id(memory.id)})" if style.ids else ""
    return f"- [{', '.join(marks)}; {memory.memory_type}] {_speaker(memory, asks=asks)}{text}{identity}"


def line_date(memory: ShownMemory) -> datetime:
    """Return the event date, or else the time of the last creation, repetition or edit."""
    event = memory.event_date
    if event is not None:
        return event
    if memory.last_said_at is None and memory.edited_at is None:
        return memory.created_at
    return max(filter(None, (memory.created_at, memory.last_said_at, memory.edited_at)))


def speaker_name(memory: ShownMemory) -> str:
    """Return the name or role of a message's author, or "" for other memories."""
    if not memory.is_message:
        return ""
    metadata = memory.values["metadata"]
    names = (name.strip() for name in (metadata.get("name"), metadata.get("role")) if isinstance(name, str))
    return next(filter(None, names), "")[:_MOST_NAME]


def _speaker(memory: ShownMemory, *, asks: bool) -> str:
    name = speaker_name(memory)
    return f"{one_line(name)} {'asked' if asks else 'said'}: " if name else ""


def no_longer_true_since(memory: ShownMemory) -> datetime | None:
    """Return when a statement stopped being true, or None if it is still true."""
    ended = memory.ended_at
    return ended if ended is not None and (memory.last_said_at is None or memory.last_said_at <= ended) else None
