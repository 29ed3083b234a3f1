"""Compare the words of two memories to decide whether they say the same thing."""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache

from agent_memory.foundation.text.stemming.unicode_forms import normalized
from agent_memory.foundation.text.terms import chunks
from agent_memory_client.models import MemoryRecord, MemoryTypeEnum

_EDGES = " .!…\"'“”‘’"
# Restatements may differ in contractions, in "am", "is" and "are", in articles, in words such as "really", and in a
# pronoun after a comma. All other words must be equal, in order.
_SPELLED_OUT = {"can't": "can not", "cannot": "can not", "won't": "will not", "shan't": "shall not", "ain't": "not"}
_ENDINGS = (("n't", " not"), ("'m", " am"), ("'re", " are"), ("'ve", " have"), ("'ll", " will"), ("'d", " would"), ("'s", " is"))
_AROUND_WORDS = _EDGES + ",;:()?„«»[]"
_SAYS_NOTHING = frozenset(["a", "an", "the", "am", "is", "are", "just", "really", "actually", "still", "well", "oh", "also", "too"])
_TAKES_UP = frozenset(("it", "they", "he", "she"))
# Shorter texts are ambiguous. Users do not repeat longer texts word for word.
_LEAST_WORDS, _MOST_WORDS = 2, 40

QUESTION = "question"
"""Metadata key. Its value is true if a message consists only of questions."""
ABOUT_USER = "about_user"
"""Metadata key. Its value is true if a message is about its user."""

Kin = tuple[str, str | None, str | None, str | None, str, datetime | None]


def normal_text(text: str) -> str:
    """Case-fold text, collapse spaces, and strip outer quotes, periods and exclamation marks."""
    words = " ".join(chunks(text) if text.isascii() else normalized("NFC", text).casefold().split())
    return words.strip(_EDGES) or words


def restatement(text: str) -> str:
    """Return the words that a text has in common with restatements of it, in order.

    Returns "" if the text is too short or too long. A question never equals a statement.
    """
    pieces = chunks(text) if text.isascii() else normalized("NFC", text).casefold().replace("’", "'").split()
    if not _LEAST_WORDS <= len(pieces) <= _MOST_WORDS:
        return ""
    content_words: list[str] = []
    after_comma = False
    for piece in pieces:
        word = piece.strip(_AROUND_WORDS)
        if word not in _SAYS_NOTHING and not (after_comma and word in _TAKES_UP):
            content_words += [part for part in _spelled_out(word).split() if part not in _SAYS_NOTHING]
        after_comma = piece.endswith(",")
    return " ".join(content_words) + ("?" if "?" in text else "") if len(content_words) >= _LEAST_WORDS else ""


def _spelled_out(word: str) -> str:
    if "'" not in word:
        return _SPELLED_OUT.get(word, word)
    if (spelled := _SPELLED_OUT.get(word)) is not None:
        return spelled
    ending = next((ending for ending in _ENDINGS if word.endswith(ending[0])), None)
    return word if ending is None else word.removesuffix(ending[0]) + ending[1]


def kin(record: MemoryRecord, words: str | None = None) -> Kin:
    """Return a key that is the same for memories that repeat each other.

    `words` is the normalized text, if the caller already has it.
    """
    owner = (record.namespace, record.user_id, record.agent_id)
    return normal_text(record.text) if words is None else words, *owner, record.memory_type.value, record.event_date


def kin_name(record: MemoryRecord, words: str) -> str:
    """Return the same string as `repr(kin(record, words))`, but faster."""
    return (
        f"({words!r}, {_names_text(record.namespace, record.user_id, record.agent_id, record.memory_type._value_)}, {record.event_date!r})"
    )


@lru_cache(maxsize=8192)
def _names_text(*names: str | None) -> str:
    return repr(names)[1:-1]


def is_turn(record: MemoryRecord) -> bool:
    """True if a memory is a verbatim message from a session."""
    return record.memory_type is MemoryTypeEnum.MESSAGE and bool(record.extracted_from)


def is_plain(turn: MemoryRecord) -> bool:
    """True if a message has no pin, tags, dates, or metadata that replacing it would lose."""
    more = (turn.pinned, turn.topics, turn.entities, turn.event_date, turn.valid_from, turn.valid_to, turn.expires_at, turn.slot)
    return not any(more) and turn.metadata.keys() <= {"role", "name", QUESTION, ABOUT_USER}


def ends_at(record: MemoryRecord) -> datetime | None:
    """Return the earlier of `valid_to` and `expires_at`, or None."""
    valid, expires = record.valid_to, record.expires_at
    return valid if expires is None else expires if valid is None else min(valid, expires)


def begins_at(record: MemoryRecord) -> datetime:
    """Return `valid_from`, or the creation time if it is None."""
    return record.valid_from or record.created_at
