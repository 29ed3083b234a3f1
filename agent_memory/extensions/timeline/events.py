"""Turn memories into timeline events. The result is deterministic."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from typing import Any

from agent_memory.extensions.profile.entries import MOST_SHOWN_CHARS, FollowedMemory, shown_evidence
from agent_memory.extensions.profile.self_statements import MOST_READ, tells_of_speaker
from agent_memory.extensions.timeline.event_time import EventTime, event_time, time_of_text
from agent_memory.extensions.timeline.periods import day_number, periods_of_event
from agent_memory.features.memories.records import is_from_person
from agent_memory.foundation.core.clock import stated_date
from agent_memory.foundation.storage.keyspace import tag
from agent_memory.foundation.text.cleaning.control_characters import cut
from agent_memory.foundation.text.languages.questions import is_bare_question
from agent_memory.foundation.text.normalization import QUESTION
from agent_memory.foundation.text.passages.sentences import split_sentences
from agent_memory_client.models import MemoryRecord, MemoryTypeEnum

# A timeline shows at most this many events from one message.
_MOST_OF_MESSAGE = 8
# Repeating a statement more often than this does not increase its weight in a summary.
MOST_WEIGHED = 3


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    name: str
    """Unique per owner. Determines the order of a day's events."""
    time: EventTime
    facets: tuple[str, ...]
    """Topics and entities to filter by."""
    payload: dict[str, Any] = field(default_factory=dict[str, Any])
    until: float | None = None
    """The Unix time from which the event is hidden, or None."""

    @property
    def first(self) -> int:
        """The first day, in days since 1970."""
        return day_number(self.time.first)

    @property
    def last(self) -> int | None:
        return None if self.time.last is None else day_number(self.time.last)

    def item(self, zone: tzinfo) -> dict[str, Any]:
        """Return the event as an argument for `timeline_follow.lua`."""
        periods = periods_of_event(self.time.first, self.time.precision, zone)
        facets = [*self.facets, facet("precision", self.time.precision)]
        item: dict[str, Any] = {"m": self.name, "b": self.first, "f": facets, "h": self._digest(periods), "p": periods, "j": self.json()}
        return item | ({} if self.last is None else {"e": self.last})

    def json(self) -> str:
        hidden = {} if self.until is None else {"until": self.until}
        return json.dumps(self.payload | hidden, ensure_ascii=False, separators=(",", ":"), sort_keys=True)

    def _digest(self, periods: list[tuple[str, int]]) -> str:
        """Return a digest of everything that affects a summary."""
        read = {name: self.payload.get(name) for name in ("text", "start", "end", "precision", "at", "who")}
        weight = min(self.payload.get("times_said", 1), MOST_WEIGHED)
        return hashlib.sha256(json.dumps([read, self.until, weight, periods], sort_keys=True).encode()).hexdigest()[:16]


def facet(kind: str, value: str) -> str:
    """Return a facet's name in Redis. `kind` is "topic", "entity" or "precision"."""
    return f"{kind[0]}{tag(value.casefold())}"


def events_of(memory: FollowedMemory, zone: tzinfo = UTC, *, statements: bool = True, over: bool = False) -> list[TimelineEntry]:
    """Return a memory's events in the order of its text.

    Set `over` if the memory has ended. If `statements` is False, messages and semantic facts with
    no `event_date` produce no events.
    """
    record = memory.record
    if not memory.is_personal or (over and not _ended_by_itself(record)):
        return []
    stated_at = stated_date(record.metadata) or record.created_at
    if record.memory_type is MemoryTypeEnum.MESSAGE and record.event_date is None:
        return _message_entries(memory, stated_at, zone) if statements else []
    episodic = record.memory_type is MemoryTypeEnum.EPISODIC
    time = None
    if episodic or (record.event_date is not None and record.memory_type is not MemoryTypeEnum.PROCEDURAL):
        time = event_time(record, stated_at, zone, uses_stated_at=episodic)
    elif statements and record.memory_type is not MemoryTypeEnum.PROCEDURAL:
        # No model decided that this memory is an event, so its text must mention the time.
        time = time_of_text(record.text, stated_at, zone)
    return [] if time is None else [_entry(memory, 0, record.text, time)]


def _ended_by_itself(record: MemoryRecord) -> bool:
    return (
        record.superseded_by is None and record.valid_to is not None and (record.expires_at is None or record.expires_at > record.valid_to)
    )


def _message_entries(memory: FollowedMemory, stated_at: datetime, zone: tzinfo) -> list[TimelineEntry]:
    """Return an event for each dated sentence about the speaker."""
    record = memory.record
    if not is_from_person(record) or record.metadata.get(QUESTION) or memory.outdated:
        return []
    entries: list[TimelineEntry] = []
    for sentence in split_sentences(record.text[:MOST_READ]):
        asks = sentence.rstrip().endswith(("?", "？")) or is_bare_question(sentence)
        time = None if asks or not tells_of_speaker(sentence) else time_of_text(sentence, stated_at, zone)
        if time is not None:
            entries.append(_entry(memory, len(entries), sentence, time))
        if len(entries) == _MOST_OF_MESSAGE:
            break
    return entries


def _entry(memory: FollowedMemory, number: int, text: str, time: EventTime) -> TimelineEntry:
    record = memory.record
    order = max(0, int((time.at or record.created_at).timestamp()))
    topics, entities = list(dict.fromkeys(record.topics or ())), list(dict.fromkeys(record.entities or ()))
    facets = [facet(kind, value) for kind, values in (("topic", topics), ("entity", entities)) for value in values]
    payload: dict[str, Any] = {
        "id": record.id,
        "text": cut(text, MOST_SHOWN_CHARS),
        "start": time.first.isoformat(),
        "end": None if time.last is None else time.last.isoformat(),
        "precision": time.precision,
        "dated_by": time.dated_by,
        "at": None if time.at is None else time.at.isoformat(),
        "who": _speaker_of(record),
        "topics": topics,
        "entities": entities,
        "times_said": memory.times,
        "last_said": datetime.fromtimestamp(memory.last, UTC).isoformat(),
        "evidence": shown_evidence(memory),
    }
    return TimelineEntry(f"{order:012d}.{memory.mid}.{number}", time, tuple(dict.fromkeys(facets)), payload, _until(record))


def _speaker_of(record: MemoryRecord) -> str | None:
    """Return the speaker's name, or the user's id."""
    name = record.metadata.get("name")
    if isinstance(name, str) and name:
        return name
    roles = [piece.role for piece in record.evidence or () if piece.role not in (None, "user", "assistant", "system", "tool")]
    return roles[0] if roles else record.user_id


def _until(record: MemoryRecord) -> float | None:
    """Return the Unix time when the memory expires or is superseded, or None."""
    ends = [record.expires_at, record.valid_to if record.superseded_by is not None else None]
    moments = [moment.timestamp() for moment in ends if moment is not None]
    return min(moments, default=None)
