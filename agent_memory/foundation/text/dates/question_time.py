"""Find the time that a question asks about ("What did I do last weekend?").

Ignore times in statements, and questions such as "When did I …?".
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo

from agent_memory.foundation.core.clock import local_time
from agent_memory.foundation.text.dates.named_times import Mention, NamedTime, language_table, mentions, midnight
from agent_memory.foundation.text.dates.tables import Table

_SENTENCE = re.compile(r"(?<![.!?…])(?<!\b\d)(?<!\b\d\d)[.!?…]++\s+|[\n。！]+|[？](?=.)")
_WORD = re.compile(r"[^\W_]+")
_CLAUSE_END = re.compile("[,，;；—–]")
_MOST_CHARS = 8_192


@dataclass(frozen=True, slots=True)
class Span:
    """A half-open interval in UTC, and the words that express it."""

    start: datetime
    end: datetime
    words: str
    is_in_words: bool = False
    """True if memories may contain the same words, such as "in May 2023"."""
    is_ahead: bool = False
    """True if the question clearly asks about plans."""


def question_time(text: str, now: datetime, zone: tzinfo = UTC) -> Span | None:
    """Return the time that a question clearly asks about, or None.

    Relative times are based on `now` in the time zone `zone`.
    """
    sentences = [part for part in _SENTENCE.split(text[-_MOST_CHARS:].strip()) if part.strip()]
    if not sentences:
        return None
    question = sentences[-1].strip()
    mentioned = mentions(question, local_time(now, zone).date())
    table = language_table(question)
    if len(mentioned) != 1 or table is None:
        return None
    mention = mentioned[0]
    tenses = {way for way, pattern in table.tense.items() if pattern.search(question)}
    named = mention.time or _likely(mention, tenses, local_time(now, zone).date())
    if named is None:
        return None
    is_alone = len(sentences) == 1 and not _WORD.search(question[: mention.start] + question[mention.end :])
    if not is_alone and not _asks_about(question, mention, table):
        return None
    # The first day of the time, and the day after its last day.
    after = named.last + timedelta(days=1)
    first = {"on": named.first, "since": named.first, "after": after}.get(named.relation, date.min)
    end = {"on": after, "until": after, "before": named.first}.get(named.relation, date.max)
    is_in_words = not mention.is_relative and named.relation == "on"
    is_clear = mention.time is not None or not tenses.isdisjoint(("present", "future"))
    is_ahead = midnight(end, zone) > now and "past" not in tenses and is_clear
    return Span(midnight(first, zone), midnight(end, zone), question[mention.start : mention.end], is_in_words, is_ahead)


def _likely(mention: Mention, tenses: Collection[str], today: date) -> NamedTime | None:
    """Return the latest past reading for the past tense, or else the next future reading.

    Returns None if the tense is unclear ("What did I book for Friday?").
    """
    is_past = "past" in tenses
    if len(mention.possible) < 2 or (is_past and ("future" in tenses or "unsure" in tenses)):
        return None
    before, after = ([each for each in mention.possible if each.first <= today], [each for each in mention.possible if each.last >= today])
    reading = max(before, default=None) if is_past else min(after, default=None)
    return None if reading is None else NamedTime(*reading, mention.start, mention.end)


def _asks_about(question: str, mention: Mention, table: Table) -> bool:
    """True if a question asks about the mentioned time.

    False if it asks when something happened, or if the time is in an earlier statement.
    """
    if table.asks_when.search(question):
        return False
    before, after = question[: mention.start], question[mention.end :]
    own = _CLAUSE_END.split(before)[-1] + " " + _CLAUSE_END.split(after, maxsplit=1)[0]
    later = _CLAUSE_END.split(after, maxsplit=1)[1:]
    if _WORD.search(own) and later and _WORD.search(later[0]):
        return False
    if question.endswith(("?", "？")):
        return True
    begins = not _WORD.search(before)
    rest = f"{before}{after}" if table.blankless else (after if begins else before).lstrip(" ,¿¡\"'")
    return (table.asks.search if table.blankless else table.asks.match)(rest) is not None


def beside(text: str, span: Span) -> str:
    """Remove the words that express the time span from the text."""
    return " ".join(text.replace(span.words, " ", 1).split())
