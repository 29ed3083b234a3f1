"""A memory as a line of a prompt: `- [date; type] text (ID: id)`, with what else must be known of it (pure).

What was said names who said it, and the day on which it was said last.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo

from agent_memory.features.memories.shown_memories import ShownMemory
from agent_memory.features.recall.line_escaping import one_line, shown_id
from agent_memory.features.recall.superseded_messages import no_longer_true_since
from agent_memory.foundation.core.clock import as_in_zone
from agent_memory.foundation.text.retrieval_units import day
from agent_memory_client.models import SearchRequest

LINE_TOKENS = 22
"""Tokens around each memory's text: its date and type, and who said it."""
ID_TOKENS = 22
"""Tokens of its id."""
_MOST_NAME = 64


@dataclass(slots=True)
class LineStyle:
    """How lines are written: as seen at a time (`now`, in `zone`), with or without ids."""

    now: datetime
    zone: tzinfo
    ids: bool = True

    @classmethod
    def of_search(cls, request: SearchRequest, zone: tzinfo = UTC, *, ids: bool = True) -> LineStyle:
        """Return the style of a search's answer, as seen at its time."""
        return cls((request.reference_time or datetime.now(UTC)).astimezone(zone), zone, ids)


def ago(moment: datetime, now: datetime) -> str:
    """Return how long ago, in words: "today", "3 days ago", "2 weeks ago"; "in 3 days" for what is to come."""
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
    """One memory on one line; `date` is its `line_date`. `latest` marks the last of statements that contradict each other; `asks` says that
    it is but a question. Of one that is too long its `passage` is shown."""
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
    """The time that a memory is of: of an event when it happened, else when it was last said, or given other words."""
    event = memory.event_date
    if event is not None:
        return event
    if memory.last_said_at is None and memory.edited_at is None:
        return memory.created_at
    return max(filter(None, (memory.created_at, memory.last_said_at, memory.edited_at)))


def speaker_name(memory: ShownMemory) -> str:
    """Who said a message: the name that it carries, else the role; "" for what is no message, or where nobody knows."""
    if not memory.is_message:
        return ""
    metadata = memory.values["metadata"]
    names = (name.strip() for name in (metadata.get("name"), metadata.get("role")) if isinstance(name, str))
    return next(filter(None, names), "")[:_MOST_NAME]


def _speaker(memory: ShownMemory, *, asks: bool) -> str:
    name = speaker_name(memory)
    return f"{one_line(name)} {'asked' if asks else 'said'}: " if name else ""
