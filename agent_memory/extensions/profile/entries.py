"""Turn memories into profile entries. The result is deterministic."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, tzinfo
from hashlib import blake2b
from typing import Any

from agent_memory.extensions.profile.schema import is_lasting_name
from agent_memory.extensions.profile.self_statements import SHORT_TERMS, is_lasting, recurring_terms, tells_of_speaker, term_pairs
from agent_memory.features.memories.records import StoredEvidence, is_from_person, trust_of
from agent_memory.foundation.core.clock import calendar_day, iso, stated_date
from agent_memory.foundation.storage.keyspace import tag
from agent_memory.foundation.text.cleaning.control_characters import cut
from agent_memory.foundation.text.normalization import ABOUT_USER, QUESTION, ends_at
from agent_memory_client.models import Evidence, MemoryRecord, MemoryTypeEnum

MOST_SHOWN_CHARS = 600
"""Maximum text length, in characters."""
_SHOWN_EVIDENCE = 5
_EPOCH = date(1970, 1, 1)
_FACTS = (MemoryTypeEnum.SEMANTIC, MemoryTypeEnum.EPISODIC)


@dataclass(frozen=True, slots=True)
class FollowedMemory:
    """A current memory with its evidence. `last_said` is a Unix time."""

    mid: str
    tenant: str
    record: MemoryRecord
    last_said: float | None = None
    times: int = 1
    outdated: bool = False
    """True if a fact extracted from this message was superseded."""
    evidence: Sequence[StoredEvidence] = ()

    @property
    def is_personal(self) -> bool:
        """True if the memory belongs to a user, not an agent, and is not quarantined."""
        record = self.record
        return record.user_id is not None and record.agent_id is None and record.quarantine is None

    @property
    def last(self) -> float:
        """The Unix time of creation or of the last mention, whichever is later."""
        return max(self.record.created_at.timestamp(), self.last_said or 0.0)


@dataclass(frozen=True, slots=True)
class ProfileEntry:
    mid: str
    groups: Sequence[str]
    """One group for the entry alone, and one per pair of its terms."""
    days: Sequence[int]
    """Days with a mention, in days since 1970, ascending."""
    rank: str | None
    """The entry with the lowest rank represents the group. With None, an entry represents only its own group."""
    lasting: bool
    last: int
    """When the memory was last mentioned, in seconds since 1970."""
    slot: str | None
    payload: dict[str, Any] = field(default_factory=dict[str, Any])

    def values(self) -> dict[str, Any]:
        """Return the entry in the format that `profile_follow.lua` expects."""
        head = {"g": self.groups, "d": self.days, "k": int(self.lasting), "l": self.last, "i": self.payload["id"]}
        head |= ({} if self.rank is None else {"r": self.rank}) | ({} if self.slot is None else {"s": tag(self.slot)})
        return {"head": head, "entry": json.dumps(self.payload, ensure_ascii=False, separators=(",", ":"), sort_keys=True)}


def entry_of(memory: FollowedMemory, zone: tzinfo = UTC, *, statements: bool = True) -> ProfileEntry | None:
    """Return a memory's entry, or None if it does not belong in a profile.

    If `statements` is False, exclude messages.
    """
    record = memory.record
    fits = record.memory_type in _FACTS or (statements and record.memory_type is MemoryTypeEnum.MESSAGE and _tells(memory))
    if not (memory.is_personal and fits):
        return None
    terms = recurring_terms(record.text)
    short = 2 <= len(terms) <= SHORT_TERMS
    lasting = record.memory_type is not MemoryTypeEnum.EPISODIC and _lasts(record)
    return ProfileEntry(
        mid=memory.mid,
        groups=[f"={memory.mid}", *(blake2b(pair.encode(), digest_size=6).hexdigest() for pair in term_pairs(terms))],
        days=_days(memory, zone),
        rank=f"{len(terms)}{max(0, int(record.created_at.timestamp())):012d}" if short else None,
        lasting=lasting,
        last=int(memory.last),
        slot=record.slot,
        payload=_entry_payload(memory),
    )


def _tells(memory: FollowedMemory) -> bool:
    record = memory.record
    if record.metadata.get(QUESTION) or memory.outdated or not is_from_person(record):
        return False
    return bool(record.metadata.get(ABOUT_USER)) or tells_of_speaker(record.text)


def _lasts(record: MemoryRecord) -> bool:
    names = [record.slot or "", record.category or "", *(record.topics or ())]
    return any(is_lasting_name(name) for name in names) or is_lasting(record.text)


def _days(memory: FollowedMemory, zone: tzinfo) -> list[int]:
    record = memory.record
    first = record.event_date or stated_date(record.metadata) or record.created_at
    pieces = [piece for piece in (*(record.evidence or ()), *memory.evidence) if piece.source not in ("assistant", "tool")]
    return sorted({max(0, day_since_epoch(moment, zone)) for moment in (first, *(piece.at for piece in pieces)) if moment})


def _entry_payload(memory: FollowedMemory) -> dict[str, Any]:
    record = memory.record
    ends = ends_at(record)
    body = {
        "id": record.id,
        "text": cut(record.text, MOST_SHOWN_CHARS),
        "type": record.memory_type.value,
        "since": iso(record.valid_from or record.event_date or record.created_at),
        "last_said": datetime.fromtimestamp(memory.last, UTC).isoformat(),
        "times_said": memory.times,
        "evidence": shown_evidence(memory),
        "confidence": record.confidence if record.confidence is not None else trust_of(record),
        "event_date": record.event_date and iso(record.event_date),
        "slot": record.slot or None,
        "ends": ends and ends.timestamp(),
        "begins": record.valid_from and record.valid_from.timestamp(),
    }
    return {name: value for name, value in body.items() if value is not None}


def shown_evidence(memory: FollowedMemory) -> list[dict[str, Any]]:
    """Return the latest evidence, omitting quotes."""
    record = memory.record
    own = record.evidence or [Evidence(session_id=record.session_id, message_ids=record.extracted_from or [], at=record.created_at)]
    pieces = sorted((*own, *memory.evidence), key=lambda piece: (piece.at or record.created_at, piece.session_id or "", piece.message_ids))
    shown_pieces = [
        {"session_id": piece.session_id, "message_ids": sorted(piece.message_ids)[-5:], "at": piece.at and iso(piece.at)}
        for piece in pieces[-_SHOWN_EVIDENCE:]
    ]
    return [{name: value for name, value in piece.items() if value} for piece in shown_pieces]


def day_since_epoch(moment: datetime, zone: tzinfo = UTC) -> int:
    """Return a moment's calendar day in `zone`, in days since 1970."""
    return (calendar_day(moment, zone) - _EPOCH).days
