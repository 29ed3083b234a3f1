"""Summarize text by selecting statements and grouping them by day and speaker.

This needs no language model. The method is greedy weighted maximum coverage under a token budget
(Lin and Bilmes, "A Class of Submodular Functions for Document Summarization", ACL 2011). Rarer
words weigh less; names and numbers weigh more.
"""

from __future__ import annotations

import calendar
import heapq
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from typing import NamedTuple

from agent_memory.foundation.text.dates.relative import with_absolute_times
from agent_memory.foundation.text.languages.filler import is_filler
from agent_memory.foundation.text.languages.phrases import BLANKLESS
from agent_memory.foundation.text.languages.questions import is_bare_question
from agent_memory.foundation.text.retrieval_units import day
from agent_memory.foundation.text.summary_subjects import HEAD, Subjects, small_words
from agent_memory.foundation.text.terms import content_of, stems, terms, words

# Weights of names and numbers, and the exponent for the number of statements that contain a word.
_NAMED = 3.0
_NUMBERED = 4.0
_FEWNESS = 0.5
# Factors in a statement's gain: the user's statements matter most, questions least.
_ASSISTANT = 0.5
_ASKING = 0.25
_SHORTEST = 3  # words in a statement
_LEAST_CONTENT = 2  # content words: "What a nice idea!" has fewer. With "I" or "we" one is enough: "I'm vegan"
_OWN = re.compile(r"\b(?:I|[Ww]e|[Mm]y|[Oo]ur)\b")
# With more statements, the second pass would take too many rounds.
_MOST_TRIED = 4000
# A capital inside a word makes it a name: "SQLite", "AutoCAD", "NOAA".
_NAME = re.compile(r"(?<![.!?] )(?<=\s)[A-Z][A-Za-z]{2,40}|\b[A-Za-z]{1,40}[A-Z]\w{0,40}|\b\d[\d.,:]{0,20}")
_DAY_LINE = re.compile(r"(\d{1,2}) ([A-Z][a-z]{2,8})(?: (\d{4}))?:")
_SPEAKER_LINE = re.compile(r"([^:\n]{1,100}): (.*)")
_LEAD = re.compile(r"^[^,.!?;:]{1,40}[,.!?;:]\s+")
_MOST_LEADS = 3
_SPOKEN_BY = re.compile(r"([A-Z][\w'’-]{1,30}): (?=\S)")
_ENDS = frozenset(".!?…。！？｡؟।:;,)]\"'”’»」")


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence with its speaker and time. `speaker` is "" if unknown."""

    text: str
    speaker: str
    at: datetime


class SpokenMessage(NamedTuple):
    """A message's text, role and time."""

    text: str
    role: str
    at: datetime


def statements_of(messages: Sequence[SpokenMessage], split: Callable[[str], Sequence[str]]) -> list[Statement]:
    """Return the sentences in messages, with their speakers.

    The speaker is the role, or the name before a message ("Ana: …") if most messages with this role
    have one.
    """
    named = Counter(each.role for each in messages if _SPOKEN_BY.match(each.text) is not None)
    total = Counter(each.role for each in messages)
    statements: list[Statement] = []
    for each in messages:
        m = _SPOKEN_BY.match(each.text) if 2 * named[each.role] > total[each.role] else None
        text, speaker = (each.text, each.role) if m is None else (each.text[m.end() :], m[1])
        statements += [Statement(sentence, speaker, each.at) for sentence in split(text)]
    return statements


def statements_of_summary(summary: str, split: Callable[[str], Sequence[str]], at: datetime) -> list[Statement]:
    """Return the statements in an earlier summary.

    A line with no day gets the time `at`.
    """
    statements: list[Statement] = []
    current: datetime | None = None
    for line in summary.splitlines():
        if line.startswith(f"{HEAD}: "):
            statements.append(Statement(line.removeprefix(f"{HEAD}: "), HEAD, at))
        elif (m := _DAY_LINE.fullmatch(line)) is not None and (when := _day_of(m, current, at)) is not None:
            current = when
        elif current is not None and (spoken := _SPEAKER_LINE.fullmatch(line)) is not None:
            statements += [Statement(sentence, spoken[1], current) for sentence in split(spoken[2])]
        else:
            statements += [Statement(sentence, "", at) for sentence in split(line)]
    return statements


def _day_of(m: re.Match[str], before: datetime | None, at: datetime) -> datetime | None:
    year = m[3] or (None if before is None else before.year)
    if year is None or m[2] not in calendar.month_name:
        return None
    try:
        return datetime(int(year), list(calendar.month_name).index(m[2]), int(m[1]), tzinfo=at.tzinfo)
    except ValueError:
        return None


def standing_alone(text: str, at: datetime, zone: tzinfo) -> str:
    """Remove leading filler from a sentence, and make its dates absolute."""
    text = " ".join(text.split())
    for _ in range(_MOST_LEADS):
        m = _LEAD.match(text)
        if m is None or not is_filler(m[0]):
            break
        text = text[m.end() :]
    return with_absolute_times(text, at.astimezone(zone).date())


def summarize(statements: Sequence[Statement], budget: int, count: Callable[[str], int], zone: tzinfo) -> str:
    """Return a summary within `budget` tokens, or "" if no statement fits.

    `count` returns the number of tokens in a text.
    """
    former = [word for each in statements if each.speaker == HEAD for word in each.text.split()]
    own_statements = [each for each in statements if each.speaker != HEAD and not is_filler(each.text)]
    apart = [replace(each, text=standing_alone(each.text, each.at, zone)) for each in own_statements]
    telling = [each for each in apart if _tells(each.text) and not _is_applause(each)]
    subjects = Subjects([each.text for each in telling], former)
    room = budget - subjects.room(budget, count)
    chosen = most_telling(telling, room, count)
    text = ""
    while chosen:
        text = layout([telling[index] for index in sorted(chosen)])
        if count(text) <= room:
            break
        chosen.pop()
        text = ""
    line = subjects.line(text, budget - count(text) - 1, count)
    return "\n".join(part for part in (text, line) if part)


def most_telling(statements: Sequence[Statement], budget: int, count: Callable[[str], int]) -> list[int]:
    """Return the indices of the most informative statements, best first.

    The statements fit within about `budget` tokens.
    """
    return _Choice(statements, budget, count).best()


def _is_applause(statement: Statement) -> bool:
    """True for an assistant's exclamation with no name or number ("Great choice!")."""
    text = statement.text.rstrip()
    return statement.speaker == "assistant" and text.endswith(("!", "！")) and _NAME.search(text) is None


def _tells(text: str) -> bool:
    # In scripts without spaces, each character counts as a word.
    if max(len(words(text)), len(stems(text))) < _SHORTEST or is_filler(text):
        return False
    return not text.isascii() or len(content_of(text)) >= (1 if _OWN.search(text) else _LEAST_CONTENT)


def layout(statements: Iterable[Statement]) -> str:
    """Format statements as text, grouped by day and then by speaker."""
    by_day: dict[str, dict[str, list[str]]] = {}
    lines: list[str] = []
    year = None
    for each in statements:
        if each.speaker:
            by_day.setdefault(day(each.at), {}).setdefault(each.speaker.replace(":", " "), []).append(each.text)
        else:
            lines.append(each.text)
    for when, spoken in by_day.items():
        short, _, own_year = when.rpartition(" ")
        lines.append(f"{short if own_year == year else when}:")
        lines += [f"{speaker}: {_in_a_row(texts)}" for speaker, texts in spoken.items()]
        year = own_year
    return "\n".join(lines)


def _in_a_row(texts: Sequence[str]) -> str:
    return " ".join([*map(_ended, texts[:-1]), *texts[-1:]])


def _ended(text: str) -> str:
    return text if text[-1:] in _ENDS else text + ("。" if BLANKLESS.match(text[-1:]) else ".")


def _is_asking(text: str) -> bool:
    return text.rstrip().endswith(("?", "？")) or is_bare_question(text)


class _Choice:
    def __init__(self, statements: Sequence[Statement], budget: int, count: Callable[[str], int]) -> None:
        self._budget = budget
        small = frozenset(terms(" ".join(small_words(each.text for each in statements))))
        self._terms = [
            frozenset(term for term in terms(each.text) if not term.startswith("x") and term not in small) for each in statements
        ]
        common = Counter(term for of_one in self._terms for term in of_one)
        named = frozenset(term for each in statements for name in _NAME.findall(each.text) for term in terms(name))
        self._weights = {
            term: number**_FEWNESS * (_NUMBERED if term.isdigit() else _NAMED if term in named else 1.0) for term, number in common.items()
        }
        self._factors = [
            (_ASKING if _is_asking(each.text) else 1.0) * (_ASSISTANT if each.speaker == "assistant" else 1.0) for each in statements
        ]
        self._sizes = [count(f" {_ended(each.text)}") for each in statements]
        # Each day, and each speaker on a day, costs its heading's tokens once.
        self._days = [day(each.at) if each.speaker else "" for each in statements]
        self._lines = [(when, each.speaker) for when, each in zip(self._days, statements, strict=True)]
        self._heads = {when: count(f"{when.rpartition(' ')[0]}:") + 1 if when else 0 for when in set(self._days)}
        self._labels = {name: count(f"{name}:") + 1 if name else 1 for _, name in set(self._lines)}

    def best(self) -> list[int]:
        """Return the indices of the chosen statements, best first."""
        chosen, weight = self._filled(())
        for index in tuple(chosen) if len(self._sizes) <= _MOST_TRIED else ():
            others, gained = self._filled([other for other in chosen if other != index], without=index)
            if gained > weight:
                chosen, weight = others, gained
        # Sizes are estimates. The least dense statements come last, because the caller drops statements from the end
        # if the summary is too long.
        return sorted(chosen, key=self._density, reverse=True)

    def _density(self, index: int) -> float:
        return sum(self._weights[term] for term in self._terms[index]) * self._factors[index] / self._sizes[index]

    def _filled(self, fixed: Collection[int], without: int = -1) -> tuple[list[int], float]:
        """Return `fixed` plus the best statements other than `without`, and the total gain."""
        covered: set[str] = set()
        opened: set[str | tuple[str, str]] = set()
        chosen: list[int] = []
        left, gained = self._budget, 0.0

        def size(index: int) -> int:
            when, line = self._days[index], self._lines[index]
            return self._sizes[index] + (0 if when in opened else self._heads[when]) + (0 if line in opened else self._labels[line[1]])

        def gain_of(index: int) -> float:
            return sum(self._weights[term] for term in self._terms[index] if term not in covered) * self._factors[index]

        def take(index: int) -> int:
            nonlocal gained
            cost = size(index)
            gained += gain_of(index)
            chosen.append(index)
            covered.update(self._terms[index])
            opened.update((self._days[index], self._lines[index]))
            return cost

        for index in fixed:
            left -= take(index)
        heap = [(-float("inf"), index) for index in range(len(self._sizes)) if index != without and index not in fixed]
        while heap and left > 0:
            _, index = heapq.heappop(heap)
            needed = size(index)
            gain = gain_of(index)
            if needed > left or gain <= 0:
                continue
            value = -gain / needed
            # A value grows only once the summary has its day's or speaker's heading. If it still beats the next entry,
            # it is the best.
            if heap and value > heap[0][0]:
                heapq.heappush(heap, (value, index))
                continue
            left -= take(index)
        return chosen, gained
