"""Summaries without a language model: the statements that hold most of what was said, each with its day and speaker (pure).

Chosen by weighted maximum coverage under a budget, greedily by gain for each token (Lin and Bilmes, "A Class of Submodular Functions for
Document Summarization", ACL 2011): a statement gains the weights of its words that no chosen one has. A word weighs by how many
statements have it, and more when it is a name or a number.
"""

from __future__ import annotations

import heapq
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo

from agent_memory.text.languages.filler import is_filler
from agent_memory.text.languages.questions import is_bare_question
from agent_memory.text.retrieval_units import day
from agent_memory.text.terms import STOP_WORDS, terms, words
from agent_memory.text.time_expressions import Span, named_time, names_relative_time

# What names and numbers weigh beside other words, and a word that few statements have against one that many have.
_NAMED = 1.5
_FEWNESS = 0.85
# Questions tell less than statements.
_ASKING = 0.5
_SHORTEST = 3  # words of a statement
_NAME = re.compile(r"(?<![.!?] )(?<=\s)[A-Z][a-z]{2,40}|\b\d[\d.,:]{0,20}")
_LINE = re.compile(r"\[(\d{4}-\d\d-\d\d) ([^\]\n]{1,100})\] ?(.*)")
_LEAD = re.compile(r"^[^,.!?;:]{1,40}[,.!?;:]\s+")
_MOST_LEADS = 3


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence, who said it ("" for nobody in particular), and when."""

    text: str
    speaker: str
    at: datetime

    @property
    def head(self) -> str:
        """What a line of a summary begins with."""
        return f"[{self.at:%Y-%m-%d} {self.speaker}] " if self.speaker else ""


def statement_of_line(line: str, split: Callable[[str], Sequence[str]], at: datetime) -> list[Statement]:
    """What a line of a former summary says; `at` is the time of one that names none, which a model wrote."""
    m = _LINE.match(line)
    if m is None:
        return [Statement(sentence, "", at) for sentence in split(line)]
    try:
        day_said = datetime.fromisoformat(m[1]).replace(tzinfo=at.tzinfo)
    except ValueError:
        day_said = at
    return [Statement(sentence, m[2], day_said) for sentence in split(m[3])]


def standing_alone(text: str, at: datetime, zone: tzinfo) -> str:
    """A sentence without pleasantries before it, its relative dates as dates: "Wow, yesterday I …" becomes "On 7 May 2023 I …"."""
    text = " ".join(text.split())
    for _ in range(_MOST_LEADS):
        m = _LEAD.match(text)
        if m is None or not is_filler(m[0]):
            break
        text = text[m.end() :]
    if not names_relative_time(text):
        return text
    span = named_time(text, at, zone)
    if span is None or span.coming is not None or (shown := _shown(span, zone)) is None:
        return text
    return text.replace(span.words, shown, 1)


def _shown(span: Span, zone: tzinfo) -> str | None:
    first = span.start.astimezone(zone)
    length = span.end - span.start
    if length <= timedelta(hours=26):
        return f"on {day(first)}"
    if length <= timedelta(days=8):
        return f"in the week of {day(first)}"
    if length <= timedelta(days=32):
        return f"in {first:%B %Y}"
    return f"in {first.year}" if length <= timedelta(days=367) else None


def summarize(statements: Sequence[Statement], budget: int, count: Callable[[str], int], zone: tzinfo) -> str:
    """The statements that hold most, in the order in which they were given, within `budget` tokens by `count`; "" when none fits.

    Those of one speaker and day that follow each other share a line.
    """
    said = [Statement(standing_alone(each.text, each.at, zone), each.speaker, each.at) for each in statements]
    kept = [each for each in said if len(words(each.text)) >= _SHORTEST and not is_filler(each.text)]
    chosen = _chosen(kept, budget, count)
    return "\n".join(_lines([kept[index] for index in chosen]))


def _chosen(said: Sequence[Statement], budget: int, count: Callable[[str], int]) -> list[int]:
    """The indices of the chosen statements, rising."""
    of_each = [frozenset(term for term in terms(each.text) if not term.startswith("x")) for each in said]
    common = Counter(term for terms_of_one in of_each for term in terms_of_one)
    named = frozenset(term for each in said for name in _NAME.findall(each.text) for term in terms(name))
    weights = {term: number**_FEWNESS * (_NAMED if term in named else 1.0) for term, number in common.items()}
    factors = [_factor(each.text) for each in said]
    heads = {each.head: count(each.head) for each in said}
    sizes = [count(each.text) + 1 for each in said]
    covered: set[str] = set()
    opened: set[str] = set()

    def value(index: int) -> float:
        gain = sum(weights[term] for term in of_each[index] if term not in covered) * factors[index]
        head = said[index].head
        return gain / (sizes[index] + (0 if head in opened else heads[head]))

    # A gain never grows but for a line that is opened, so that what was best and still is at least the next is the best.
    heap = [(-value(index), index) for index in range(len(said))]
    heapq.heapify(heap)
    chosen: list[int] = []
    left = budget
    while heap and left > 0:
        before, index = heapq.heappop(heap)
        head = said[index].head
        size = sizes[index] + (0 if head in opened else heads[head])
        now = value(index)
        if size > left or now <= 0:
            continue
        if heap and now < -heap[0][0] and now < -before:
            heapq.heappush(heap, (-now, index))
            continue
        chosen.append(index)
        left -= size
        covered |= of_each[index]
        opened.add(head)
    return sorted(chosen)


def _factor(text: str) -> float:
    if text.rstrip().endswith(("?", "？")) or is_bare_question(text):
        return _ASKING
    return 1.0


def _lines(said: Sequence[Statement]) -> list[str]:
    lines: list[str] = []
    before = ""
    for each in said:
        if lines and each.head and each.head == before:
            lines[-1] += f" {each.text}"
        else:
            lines.append(each.head + each.text)
        before = each.head
    return lines


def content_words(text: str) -> frozenset[str]:
    """The stems of a text's words of content."""
    return frozenset(terms(" ".join(word for word in words(text) if word not in STOP_WORDS and len(word) > 1)))
