"""When two memories say the same, as far as words alone can tell (pure)."""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache

from agent_memory.foundation.text.stemming.unicode_forms import normalized
from agent_memory.foundation.text.terms import chunks
from agent_memory_client.models import MemoryRecord, MemoryTypeEnum

_EDGES = " .!…\"'“”‘’"
# What is said again in nearly the same words differs in these alone: how forms of "to be" and negations are spelled, articles, words that
# only stress, and a pronoun that takes up what stands before a comma. All other words (names, numbers, pronouns, tenses) count, in order.
_SPELLED_OUT = {"can't": "can not", "cannot": "can not", "won't": "will not", "shan't": "shall not", "ain't": "not"}
_ENDINGS = (("n't", " not"), ("'m", " am"), ("'re", " are"), ("'ve", " have"), ("'ll", " will"), ("'d", " would"), ("'s", " is"))
_AROUND_WORDS = _EDGES + ",;:()?„«»[]"
_SAYS_NOTHING = frozenset(["a", "an", "the", "am", "is", "are", "just", "really", "actually", "still", "well", "oh", "also", "too"])
_TAKES_UP = frozenset(("it", "they", "he", "she"))
# Of fewer words too little is left to tell what is meant by, and nobody says the same twice in more.
_LEAST_WORDS, _MOST_WORDS = 2, 40

QUESTION = "question"
"""The key in the metadata of a message's memory (true) when the message is nothing but questions of the user."""
ABOUT_USER = "about_user"
"""That (true) of a message that tells of its user whatever its words: a note on them, say."""

Kin = tuple[str, str | None, str | None, str | None, str, datetime | None]


def normal_text(text: str) -> str:
    """A text without what makes no difference: case, runs of blanks, and quotation marks, full stops and exclamation marks around it."""
    words = " ".join(chunks(text) if text.isascii() else normalized("NFC", text).casefold().split())
    return words.strip(_EDGES) or words


def restatement(text: str) -> str:
    """What a text has in common with another that says the same in nearly the same words ("I'm a vegan cook", "I am vegan cook"): its
    words in order without those that say nothing; "" for one that is too short or too long for that. A question is no statement."""
    pieces = chunks(text) if text.isascii() else normalized("NFC", text).casefold().replace("’", "'").split()
    if not _LEAST_WORDS <= len(pieces) <= _MOST_WORDS:
        return ""
    kept: list[str] = []
    after_comma = False
    for piece in pieces:
        word = piece.strip(_AROUND_WORDS)
        if word not in _SAYS_NOTHING and not (after_comma and word in _TAKES_UP):
            kept += [part for part in _spelled_out(word).split() if part not in _SAYS_NOTHING]
        after_comma = piece.endswith(",")
    return " ".join(kept) + ("?" if "?" in text else "") if len(kept) >= _LEAST_WORDS else ""


def _spelled_out(word: str) -> str:
    if "'" not in word:
        return _SPELLED_OUT.get(word, word)
    if (spelled := _SPELLED_OUT.get(word)) is not None:
        return spelled
    ending = next((ending for ending in _ENDINGS if word.endswith(ending[0])), None)
    return word if ending is None else word.removesuffix(ending[0]) + ending[1]


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
    return not any(more) and turn.metadata.keys() <= {"role", "name", QUESTION, ABOUT_USER}


def ends_at(record: MemoryRecord) -> datetime | None:
    """When a memory stops being shown: its time is over, or it expires."""
    valid, expires = record.valid_to, record.expires_at
    return valid if expires is None else expires if valid is None else min(valid, expires)


def begins_at(record: MemoryRecord) -> datetime:
    """When what a memory tells began to be true: when it was made, unless it says so."""
    return record.valid_from or record.created_at
