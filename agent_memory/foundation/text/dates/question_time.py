"""Find the time that a question asks about ("What did I do last weekend?").

Ignore times in statements, and times that describe a thing ("last week's meeting"). Also ignore times in questions that
ask when something happened ("When did I …?").
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo

from agent_memory.foundation.text.dates.named_times import Mention, NamedTime, language_table, mentions, midnight
from agent_memory.foundation.text.dates.tables import Table

_SENTENCE = re.compile(r"(?<![.!?…])(?<!\b\d)(?<!\b\d\d)[.!?…]++\s+|[\n。！]+|[？](?=.)")
_WORD = re.compile(r"[^\W_]+")
_COMMAS = ",，;；"
_OF_A_THING = "的"
_MOST_CHARS = 8_192


@dataclass(frozen=True, slots=True)
class Span:
    """A half-open interval in UTC, and the words in the text that express it."""

    start: datetime
    end: datetime
    words: str
    is_in_words: bool = False
    """True if memories may contain the same words: "in May 2023", but not "last week" or "before May 2023"."""


def question_time(text: str, now: datetime, zone: tzinfo = UTC) -> Span | None:
    """Return the time that a question asks about, or None if there is no such time or it is uncertain.

    Relative times count from `now` in the time zone `zone`.
    """
    sentences = [part for part in _SENTENCE.split(text[-_MOST_CHARS:].strip()) if part.strip()]
    if not sentences:
        return None
    question = sentences[-1].strip()
    mentioned = mentions(question, now.astimezone(zone).date())
    table = language_table(question)
    if len(mentioned) != 1 or (named := mentioned[0].time) is None or table is None:
        return None
    mention = mentioned[0]
    is_alone = len(sentences) == 1 and not _WORD.search(question[: mention.start] + question[mention.end :])
    if not is_alone and not _asks_about(question, mention, named, table):
        return None
    # The first day of the time, and the day after its last day.
    after = named.last + timedelta(days=1)
    first = {"on": named.first, "since": named.first, "after": after}.get(named.relation, date.min)
    end = {"on": after, "until": after, "before": named.first}.get(named.relation, date.max)
    is_in_words = not mention.is_relative and named.relation == "on"
    return Span(midnight(first, zone), midnight(end, zone), question[mention.start : mention.end], is_in_words)


def _asks_about(question: str, mention: Mention, named: NamedTime, table: Table) -> bool:
    """True if a question asks about the mentioned time.

    Except in Chinese, the time must be at the question's beginning or end, or before a preposition.
    """
    before, after = question[: mention.start], question[mention.end :]
    if table.asks_when.search(question):
        return False
    if table.blankless:
        begin, end = max(map(before.rfind, _COMMAS)) + 1, min((at for at in map(after.find, _COMMAS) if at >= 0), default=len(after))
        clause = before[begin:] + after[:end]
        part = clause if _WORD.search(clause) else question
        return table.asks.search(part) is not None and not after.startswith(_OF_A_THING)
    begins = not _WORD.search(before)
    head = (after if begins else before).lstrip(" ,¿¡\"'")
    if table.asks.match(head) is None:
        return False
    if begins:
        return after.startswith((" ", ","))
    if named.relation != "on":
        before = table.before[named.relation].sub("", before)
    is_last = len(_WORD.findall(after)) <= table.tail and not after.startswith(("'", "’", "-"))
    return (is_last or table.goes_on.match(after.lstrip()) is not None) and table.attribute.search(before) is None


def beside(text: str, span: Span) -> str:
    """Return the text without the words that express the time span."""
    return " ".join(text.replace(span.words, " ", 1).split())
