"""When two memories say the same, as far as words alone can tell (pure)."""

from __future__ import annotations

import unicodedata
from datetime import datetime
from functools import lru_cache

from agent_memory.text.terms import chunks
from agent_memory_client.models import MemoryRecord, MemoryTypeEnum

_EDGES = " .!…\"'“”‘’"

QUESTION = "question"
"""The key in the metadata of a message's memory (true) when the message is nothing but questions of the user."""

Kin = tuple[str, str | None, str | None, str | None, str, datetime | None]


def normal_text(text: str) -> str:
    """A text without what makes no difference: case, runs of blanks, and quotation marks, full stops and exclamation marks around it."""
    words = " ".join(chunks(text) if text.isascii() else unicodedata.normalize("NFC", text).casefold().split())
    return words.strip(_EDGES) or words


def kin(record: MemoryRecord, words: str | None = None) -> Kin:
    """What repeats have in common: the words, whose they are, the type, and the date of what they tell. The session is not part of it.

    `words` are its normal text, for who has made that already.
    """
    who = (record.namespace, record.user_id, record.agent_id)
    return normal_text(record.text) if words is None else words, *who, record.memory_type.value, record.event_date


def kin_name(record: MemoryRecord, words: str) -> str:
    """`repr(kin(record, words))`, in less time: `words` are the record's normal text."""
    return f"({words!r}, {_whose(record.namespace, record.user_id, record.agent_id, record.memory_type._value_)}, {record.event_date!r})"


@lru_cache(maxsize=8192)
def _whose(*names: str | None) -> str:
    return repr(names)[1:-1]


def is_turn(record: MemoryRecord) -> bool:
    """Whether a memory is a message of a session, word for word: what was said in its place, not what somebody states."""
    return record.memory_type is MemoryTypeEnum.MESSAGE and bool(record.extracted_from)


def is_plain(turn: MemoryRecord) -> bool:
    """Whether a message says its words and no more: nobody gave it a pin, tags, dates or metadata that another memory would lack."""
    more = (turn.pinned, turn.topics, turn.entities, turn.event_date, turn.valid_from, turn.valid_to, turn.expires_at, turn.slot)
    return not any(more) and turn.metadata.keys() <= {"role", QUESTION}


def ends_at(record: MemoryRecord) -> datetime | None:
    """When a memory stops being shown: its time is over, or it expires."""
    valid, expires = record.valid_to, record.expires_at
    return valid if expires is None else expires if valid is None else min(valid, expires)


def begins_at(record: MemoryRecord) -> datetime:
    """When what a memory tells began to be true: when it was made, unless it says so."""
    return record.valid_from or record.created_at
