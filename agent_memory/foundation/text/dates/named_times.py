"""Find the dates mentioned in a text and the days they refer to.

"On Friday" is unambiguous only if its clause is about the past or the future.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import lru_cache
from re import Match
from typing import Literal, NamedTuple

from agent_memory.foundation.text.dates.readings import UNITS, Reading, Tense, Unit, readings
from agent_memory.foundation.text.dates.tables import NUMERIC, Table, tables
from agent_memory.foundation.text.stemming.foreign import LANGUAGE_CODES, frequent_words

Relation = Literal["on", "since", "until", "before", "after"]

_MOST_CHARS = 8_192
_MOST_MENTIONS = 64
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)?")
_CHINESE = re.compile("[\u4e00-\u9fff]")
_KANA = re.compile("[\u3040-\u30ff]")
_SENTENCE_END = re.compile(r"(?<![.!?…])(?<!\b\d)(?<!\b\d\d)[.!?…]++(?=\s)|[;\n。！？；]")
_CLAUSE_END = re.compile(r"[,:，：、–—()（）]|\b(?:and|but|so|because|while|und|aber|denn|weil|y|pero|porque|et|mais|car)\b", re.IGNORECASE)
_OTHERS = [language for code, language in LANGUAGE_CODES.items() if code not in ("de", "es", "fr")]
_SOME_DAY = date(2024, 5, 15)
# A weekday within this many characters of a date belongs to the date.
_BESIDE = 6
# Characters before a date that can qualify it.
_BEFORE_CHARS = 40
# Characters to read from a clause on either side of a date.
_CLAUSE_CHARS = 240
_RELATIVE = frozenset(["near", "weekday", "calendar", "weekend", "ago", "ahead", "day_of_month"])
_TENSES: Sequence[Tense] = ("past", "future", "present", "unsure")
_RELATIONS: Sequence[Relation] = ("since", "until", "before", "after")
_NAMES_YEAR = frozenset(["year", "ylast", "ythis", "ynext"])
_DATED = frozenset(["date", "month", "year"])
_FIRST_YEAR, _LAST_YEAR = 2, 9998
_MOST_DAYS = 31


@dataclass(frozen=True, slots=True)
class NamedTime:
    """An unambiguous time, with its first day, last day, and position in the text."""

    first: date
    last: date
    unit: Unit
    start: int
    end: int
    relation: Relation = "on"


class Mention(NamedTuple):
    """A date in a text, with its possible readings and, if it is unambiguous, its time.

    A recurring day (kind "each") has no readings.
    """

    language: str
    kind: str
    unit: Unit
    start: int
    end: int
    time: NamedTime | None
    possible: Sequence[Reading] = ()

    @property
    def is_relative(self) -> bool:
        """True if the date depends on when the text was written."""
        return self.kind in _RELATIVE


class _TimeMatch(NamedTuple):
    kind: str
    match: Match[str]
    table: Table
    days: int


def only_time(text: str, today: date) -> NamedTime | None:
    """Return the only time in a text, or the most precise of several nested times.

    Returns None if a time is ambiguous or the times are not nested.
    """
    mentioned = mentions(text, today)
    times = sorted((each.time for each in mentioned if each.time is not None), key=lambda each: UNITS.index(each.unit))
    if not times or len(times) < len(mentioned):
        return None
    finest = times[0]
    nested = all(each.first <= finest.first and finest.last <= each.last for each in times)
    return finest if nested and all(each.relation == finest.relation for each in times) else None


def names_time(text: str) -> bool:
    return bool(mentions(text, _SOME_DAY))


def without_times(text: str) -> str:
    """Remove dates from a text."""
    for mention in reversed(mentions(text, _SOME_DAY)):
        text = f"{text[: mention.start]} {text[mention.end :]}"
    return text


def is_only_time(text: str) -> bool:
    """True if a text contains only a time, such as "On 28 November."."""
    return names_time(text) and not _has_words(without_times(text))


def mentions(text: str, today: date) -> Sequence[Mention]:
    """Return the dates in the first 8,192 characters of a text, in order."""
    return _mentions(text[:_MOST_CHARS], today)


@lru_cache(maxsize=256)
def _mentions(text: str, today: date) -> Sequence[Mention]:
    if not _FIRST_YEAR <= today.year < _LAST_YEAR or not _may_name_one(text):
        return ()
    matches = _without_overlaps([*_numeric(text), *_worded(text)])
    beside = {index: _weekday_beside(matches, index) for index in range(len(matches))}
    adopted = {index for index, _ in beside.values() if index >= 0}
    mention_pairs: list[tuple[_TimeMatch, Mention]] = []
    for index, each in enumerate(matches):
        if index not in adopted and each.kind != "none":
            behind = matches[index - 1].match.end() if index else 0
            mention_pairs.append((each, _mention(text, each, today, beside[index][1], behind)))
    return tuple(_joined(text, mention_pairs))


def _may_name_one(text: str) -> bool:
    words, characters = _hints()
    return any(map(str.isdigit, text)) or characters.search(text) is not None or not words.isdisjoint(_WORD.findall(text.lower()))


@lru_cache(maxsize=1)
def _hints() -> tuple[frozenset[str], re.Pattern[str]]:
    """Return words and characters that occur in dates.

    Every date with no digits contains at least one of them.
    """
    sources = [pattern.pattern for table in tables().values() if not table.blankless for _, pattern, _ in table.patterns()]
    words = frozenset(word for source in sources for word in _WORD.findall(re.sub(r"\?P<\w+>|\\\w", " ", source.lower())))
    # "days?" matches "day" and "days".
    plural = frozenset(word + "s" for word in words) | frozenset(word[:-1] for word in words)
    return words | plural, re.compile("[天年月周週期拜号號日晚]")


def _numeric(text: str) -> Iterator[_TimeMatch]:
    english = tables()["en"]
    for pattern in NUMERIC:
        yield from (_TimeMatch("date", match, english, 0) for match in pattern.finditer(text))


def _worded(text: str) -> Iterator[_TimeMatch]:
    for table in _tables_of(text):
        for kind, pattern, days in table.patterns(text):
            yield from (_TimeMatch(kind, match, table, days) for match in pattern.finditer(text))


def _tables_of(text: str) -> list[Table]:
    """Return the tables for the likely languages of a text, if there are any."""
    if _CHINESE.search(text):
        return [] if _KANA.search(text) else [tables()["zh"]]
    text_words = frozenset(_WORD.findall(text.lower()[:2_000]))
    counts = {code: len(text_words & table.words) for code, table in tables().items() if not table.blankless}
    most = max(counts.values())
    if most < max(len(text_words & frequent_words(language)) for language in _OTHERS):
        return []
    return [tables()[code] for code, count in counts.items() if count == most]


def language_table(text: str) -> Table | None:
    """Return the table for the most likely language of a text, or None."""
    likely_tables = _tables_of(text)
    return likely_tables[0] if likely_tables else None


def _without_overlaps(matches: list[_TimeMatch]) -> list[_TimeMatch]:
    """Keep one match from each overlapping group: one with a year, or else the longest."""
    chosen: list[_TimeMatch] = []
    for each in sorted(matches, key=lambda each: (not _has_year(each), each.match.start() - each.match.end(), each.match.start())):
        if all(each.match.end() <= other.match.start() or other.match.end() <= each.match.start() for other in chosen):
            chosen.append(each)
            if len(chosen) == _MOST_MENTIONS:
                break
    return sorted(chosen, key=lambda each: each.match.start())


def _weekday_beside(matches: Sequence[_TimeMatch], index: int) -> tuple[int, int | None]:
    """Return the match index and number (0 is Monday) of an adjacent weekday, or (-1, None)."""
    each = matches[index]
    if each.kind == "date" and each.match.groupdict().get("weekday") is None:
        for other in (index - 1, index + 1):
            if 0 <= other < len(matches) and matches[other].kind == "weekday":
                first, second = sorted((each.match, matches[other].match), key=lambda match: match.start())
                if second.start() - first.end() <= _BESIDE:
                    table, weekday_name = matches[other].table, matches[other].match["weekday"]
                    return other, next(day for day, pattern in enumerate(table.weekdays) if pattern.match(weekday_name))
    return -1, None


def _mention(text: str, time_match: _TimeMatch, today: date, weekday: int | None, behind: int) -> Mention:
    """Return the mention for a match. `behind` is the end of the previous match."""
    kind, match, table = time_match.kind, time_match.match, time_match.table
    start, end = match.span()
    if kind == "each":
        return Mention(table.code, kind, "day", start, end, None)
    core = min((match.start(name) for name in match.re.groupindex if match.start(name) >= 0), default=start)
    before = text[max(behind, core - _BEFORE_CHARS) : core]
    first, last = _clause(text, start, end)
    first, last = max(first, start - _CLAUSE_CHARS), min(last, end + _CLAUSE_CHARS)
    clause = " ".join(f"{text[first:start]} · {text[end:last]}".split())
    try:
        possible = readings(kind, match, table, today, time_match.days, _tense(clause, table), weekday)
    except (ValueError, OverflowError):
        possible = ()  # beyond the calendar
    unit: Unit = possible[0].unit if possible else "day"
    is_yearly = (
        kind == "date" and not _has_year(time_match) and table.yearly.search(text, *_around(_SENTENCE_END, text, start, end, 0, len(text)))
    )
    if (
        len(possible) != 1
        or is_yearly
        or any(table.before[name].search(before) for name in ("part", "or", "street"))
        or table.followed.match(text, end)
    ):
        return Mention(table.code, kind, unit, start, end, None, possible)
    related: list[Relation] = [*(name for name in _RELATIONS if table.before[name].search(before)), "on"]
    return Mention(table.code, kind, unit, start, end, NamedTime(*possible[0], start, end, related[0]), possible)


def _has_year(time_match: _TimeMatch) -> bool:
    return any(group_text is not None and name in _NAMES_YEAR for name, group_text in time_match.match.groupdict().items())


def _clause(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the start and end of the clause that contains a date."""
    begin, stop = _around(_SENTENCE_END, text, start, end, 0, len(text))
    first, last = _around(_CLAUSE_END, text, start, end, begin, stop)
    if not _has_words(text[first:start] + " " + text[end:last]):
        # "On Friday, I went …"
        after = _CLAUSE_END.search(text, last + 1, stop)
        last = stop if after is None else after.start()
    return first, last


def _tense(clause: str, table: Table) -> Tense:
    ways: list[Tense] = [way for way in _TENSES if table.tense[way].search(clause)]
    return ways[0] if len(ways) == 1 else "unsure" if ways else "none"


def _has_words(text: str) -> bool:
    return sum(len(word) > 2 or _CHINESE.match(word) is not None for word in _WORD.findall(text)) > 0


def _around(boundary: re.Pattern[str], text: str, start: int, end: int, begin: int, stop: int) -> tuple[int, int]:
    """Return the span between the nearest boundaries before `start` and after `end`."""
    for match in boundary.finditer(text, begin, start):
        begin = match.end()
    behind = boundary.search(text, end, stop)
    return begin, stop if behind is None else behind.start()


def _joined(text: str, mention_pairs: Sequence[tuple[_TimeMatch, Mention]]) -> Iterator[Mention]:
    """Merge mentions that form an interval, as in "from 3 March to 5 March 2024"."""
    index = 0
    while index < len(mention_pairs):
        joint = _interval(text, mention_pairs[index], mention_pairs[index + 1]) if index + 1 < len(mention_pairs) else None
        yield mention_pairs[index][1] if joint is None else joint
        index += 1 if joint is None else 2


def _interval(text: str, begin: tuple[_TimeMatch, Mention], end: tuple[_TimeMatch, Mention]) -> Mention | None:
    (time_match, one), (_, other), table = begin, end, begin[0].table
    between = text[one.end : other.start]
    before = max(0, one.start - _BEFORE_CHARS)
    opened = table.between.search(text[before : one.start])
    start = one.start if opened is None else before + opened.start()
    joins = table.joins.fullmatch(between) or (opened and table.and_.fullmatch(between))
    if not joins or one.kind not in _DATED or other.kind not in _DATED:
        return None
    first, last = one.time, other.time
    # If one end of the interval has no year, it takes the other end's year.
    if last is not None and not _has_year(time_match):
        possible = readings(time_match.kind, time_match.match, table, last.first, 0, "past", None)
        first = replace(last, first=possible[0].first, unit=possible[0].unit) if len(possible) == 1 else None
    elif first is not None and last is None and not _has_year(end[0]):
        possible = readings(end[0].kind, end[0].match, table, first.first, 0, "future", None)
        last = replace(first, last=possible[0].last, unit=possible[0].unit, end=other.end) if len(possible) == 1 else None
    if first is None or last is None or first.first > last.last:
        return Mention(table.code, other.kind, other.unit, start, other.end, None)
    unit = first.unit if UNITS.index(first.unit) > UNITS.index(last.unit) else last.unit
    joint = replace(last, first=first.first, unit=unit, start=start, relation="on")
    return Mention(table.code, other.kind, unit, start, other.end, joint, [Reading(joint.first, joint.last, unit)])


def time_tags(first: date, last: date) -> Sequence[str]:
    """Return the index tags for a period, or () if it is longer than 31 days."""
    if (last - first).days >= _MOST_DAYS:
        return ()
    days = [f"{first + timedelta(days=number):%Y%m%d}" for number in range((last - first).days + 1)]
    is_month = first.day == 1 and (last + timedelta(days=1)).day == 1
    return [*days, f"{first:%Y%m}"] if is_month else days


def tags_of_times(text: str, today: date) -> Sequence[str]:
    """Return the tags for all possible times in a text. A full month has a single tag."""
    possible = [reading for mention in mentions(text, today) for reading in mention.possible]
    tags = [(reading.unit, time_tags(reading.first, reading.last)) for reading in possible]
    return list(dict.fromkeys(tag for unit, each in tags for tag in (each[-1:] if unit == "month" else each)))


def moments(time_: NamedTime | Reading, zone: tzinfo) -> tuple[datetime, datetime]:
    """Return a time's start and exclusive end in `zone`, converted to UTC."""
    return midnight(time_.first, zone), midnight(time_.last + timedelta(days=1), zone)


def midnight(day: date, zone: tzinfo) -> datetime:
    """Return the start of a day in a time zone, converted to UTC."""
    # The first and last days of the calendar do not exist in every zone.
    near = min(max(day, date(1, 1, 3)), date(9999, 12, 29))
    return datetime.combine(near, time(), zone).astimezone(UTC)
