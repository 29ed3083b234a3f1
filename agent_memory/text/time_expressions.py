"""The time that a question names, as an interval: "in May 2023", "last week", "on Friday", "nächste Woche", "三天后" (pure).

What is named alone stands in `languages/`: English in `english_times.py`, others in `time_words.py`. Here is what two times, or words
such as "before", make of it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import lru_cache
from re import Match
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from agent_memory.text.languages.english_times import COUNT, DAYS, MONTHS, SEASONS, YEAR, counted, english_time
from agent_memory.text.languages.time_words import (
    CHARACTERS,
    HINTS,
    MOST_CHARS,
    Days,
    Direction,
    Place,
    calendar_unit,
    direction_at,
    foreign_time,
)


@dataclass(frozen=True, slots=True)
class Span:
    """A half-open interval of time in UTC, and the words that named it.

    `direction` says which way from now the text looks. When nothing decides, the interval is the one behind, and `coming` the one ahead.
    """

    start: datetime
    end: datetime
    words: str
    direction: Direction = "past"
    coming: tuple[datetime, datetime] | None = None

    @property
    def intervals(self) -> list[tuple[datetime, datetime]]:
        """All that is meant."""
        return [(self.start, self.end)] if self.coming is None else [(self.start, self.end), self.coming]


def zone_of(name: str | None) -> tzinfo:
    """The IANA time zone of a name, UTC for none. Raises ValueError for an unknown one."""
    if name is None:
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError(f"{name} is no IANA time zone, such as Europe/Berlin") from error


@lru_cache(maxsize=512)
def _may_name_one(text: str) -> bool:
    """False for nearly all queries: the patterns would take ten times as long to find nothing."""
    if not text.isascii() and CHARACTERS.search(text) is not None:
        return True
    return _NUMBER_ALONE.search(text) is not None or not _HINTS.isdisjoint(_WORD.findall(text.lower()))


def named_time(text: str, now: datetime, zone: tzinfo = UTC, way: Direction | None = None) -> Span | None:
    """The first time that a text names, read in `zone` and relative to `now`; None when it names none. Which way it looks is decided
    by the words of its clause, unless it is given.

    "Before", "after", "until" and "since" open the interval, "between" and "from" with a second time stretch it. Of a longer text the first
    32,768 characters are read.
    """
    text = text[:MOST_CHARS]
    if not _may_name_one(text):
        return None
    today = now.astimezone(zone).date()
    found = _place(text, today, "future" if way == "future" else "past")
    if found is None:
        return None
    if way is None:
        way = direction_at(text, found[1], found[2])
        found = _place(text, today, way) if way == "future" else found
    if found is None or found[0][0] >= found[0][1]:
        return None
    days, start, end = found
    begins, ends = _midnight(days[0], zone), _midnight(days[1], zone)
    ahead = _place(text, today, "future") if way == "either" else None
    if ahead is None or ahead[0] == days:
        # What is the same whichever way one looks says itself where it lies.
        return Span(begins, ends, text[start:end], "future" if days[0] > today else "past" if days[1] <= today else way)
    return Span(begins, ends, text[start:end], way, (_midnight(ahead[0][0], zone), _midnight(ahead[0][1], zone)))


def _place(text: str, today: date, way: Direction) -> Place | None:
    return _between(text, today, way) or _one_time(text, today, way) or foreign_time(text, today, way)


_RELATIVE = re.compile(
    r"\b(?:to(?:day|morrow|night)|yesterday|ago|heute|gestern|morgen|hoy|ayer|mañana|aujourd['’]hui|hier|demain|"
    r"(?:this|last|next|past|coming) (?:\w+ )?(?:day|night|morning|afternoon|evening|week|weekend|month|year|"
    + "|".join((*DAYS, *MONTHS, *SEASONS))
    + r")s?|(?:on|by|until|since) (?:"
    + "|".join(DAYS)
    + r"))\b",
    re.IGNORECASE,
)


_CALENDAR = re.compile(r"(?:this|last|next) (week|month|year)")
_LAST_DAY = date(9998, 12, 31)
_CALENDAR_UNITS = ("day", "week", "month", "year")


def names_relative_time(text: str) -> bool:
    """Whether a text names a time that depends on when it is said ("yesterday", "next week"), so that on another day it says another."""
    return _RELATIVE.search(text) is not None


def same_meaning(text: str, said: datetime) -> tuple[datetime, datetime] | None:
    """From when until when a text that was said at a time means the same: "yesterday" on that day, "this month" in that month, in UTC.

    None when it means the same at any time.
    """
    named = [m[0].lower() for m in _RELATIVE.finditer(text)]
    if not named:
        return None
    day = min(said.astimezone(UTC).date(), _LAST_DAY)
    calendar = [m[1] if (m := _CALENDAR.fullmatch(each)) is not None else "day" for each in named]
    finest = min(calendar, key=_CALENDAR_UNITS.index)
    if finest == "week" and len(set(calendar)) > 1:
        finest = "day"  # a week may lie in two months
    begin, end = calendar_unit(finest, 0, day)
    return _midnight(begin, UTC), _midnight(end, UTC)


def beside(text: str, span: Span) -> str:
    """What a text says beside the time that it names."""
    return " ".join(text.replace(span.words, " ", 1).split())


_RELATION = re.compile(
    rf"\b(?:(?:(?:the|last) )?(?:{COUNT} )?(?P<unit>day|week|weekend|month|year)s? )?(?P<how>before|after|since|until|till) (?:the )?$",
    re.IGNORECASE,
)
_LENGTH = {"day": 1, "weekend": 7, "week": 7, "month": 31, "year": 366}


def _one_time(text: str, today: date, way: Direction) -> Place | None:
    """The first time, and what stands before it that says how it is meant."""
    found = english_time(text, today, way)
    if found is None:
        return None
    days, start, end = found
    if re.search(r"\bsince\b", text[start:end], re.IGNORECASE):
        return (days[0], date.max), start, end
    relation = _RELATION.search(text[:start])
    return found if relation is None else (_related(relation, days), relation.start(), end)


def _related(m: Match[str], days: Days) -> Days:
    """The days before or after some days. With a length ("the week before 3 August") they end or begin with these, which count as well:
    what was told on a day often happened in the week before it."""
    how, unit = m["how"].lower(), m["unit"]
    if unit is None or how not in ("before", "after"):
        opened = {"before": (date.min, days[0]), "after": (days[1], date.max), "since": (days[0], date.max)}
        return opened.get(how, (date.min, days[1]))
    length = timedelta(days=min(_LENGTH[unit.lower()] * counted(m["count"] or "one"), 100_000))
    if how == "before":
        return max(days[0], date.min + length) - length, days[1]
    return days[0], min(days[1], date.max - length) + length


_BETWEEN = re.compile(
    r"\b(?:between|from) (?:the )?(?P<first>\S.{1,28}?),? (?:and|to|until|till|through) (?:the )?(?P<second>\S.{0,120})", re.IGNORECASE
)


def _between(text: str, today: date, way: Direction) -> Place | None:
    """An interval with two ends; the first has the year of the second when it names none. None when either is no time."""
    m = _BETWEEN.search(text)
    if m is None:
        return None
    last = _beginning(m["second"], today, way)
    if last is None:
        return None
    said = m["second"][: last[2]]
    year = re.search(YEAR, said)
    dated = [] if year is None or re.search(YEAR, m["first"]) else [f"{m['first']} {year['year']}"]
    for words in (*dated, m["first"]):
        first = _beginning(words, today, way)
        if first is not None and first[2] == len(words) and first[0][0] < last[0][1]:
            return (first[0][0], last[0][1]), m.start(), m.start("second") + last[2]
    return None


def _beginning(text: str, today: date, way: Direction) -> Place | None:
    """The time that a text begins with, also one that needs a preposition elsewhere ("May", "2021", "Monday")."""
    for preposition in ("", "in ", "on "):
        found = english_time(preposition + text, today, way)
        if found is not None and found[1] == 0:
            return found[0], 0, found[2] - len(preposition)
    return None


def _midnight(day: date, zone: tzinfo) -> datetime:
    # The first and the last of all days are as good as never; no zone may lead beyond them.
    near = min(max(day, date(1, 1, 3)), date(9999, 12, 29))
    return datetime.combine(near, time(), zone).astimezone(UTC)


# Each of these patterns needs a year, a day behind its preposition or at least one of these in an ASCII text: other numbers name a time
# beside such a word only.
_NUMBER_ALONE = re.compile(rf"\b(?:{YEAR}\b|(?:(?:on|for|to|until|till|by) the|am|el|el d[ií]a|le) [0-3]?\d(?!\d))", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d_]+")
_HINTS = frozenset(
    [
        *MONTHS,
        *(month[:3] for month in MONTHS),
        "sept",
        *DAYS,
        *SEASONS,
        *(f"{unit}{ending}" for unit in ("day", "week", "month", "year") for ending in ("", "s")),
        *HINTS,
        *("weekend", "yesterday", "today", "tonight", "tomorrow", "night", "morning", "afternoon", "evening"),
    ]
)


def ago(moment: datetime, now: datetime) -> str:
    """How long ago, in words: "today", "3 days ago", "2 weeks ago", "5 months ago", "2 years ago"; "in 3 days" for what is to come."""
    days = (now.date() - moment.date()).days
    if days == 0:
        return "today"
    size = abs(days)
    unit, length = ("day", 1.0) if size < 14 else ("week", 7.0) if size < 60 else ("month", 30.44) if size < 730 else ("year", 365.25)
    count = max(int(size / length), 1)
    said = f"{count} {unit}{'' if count == 1 else 's'}"
    return f"{said} ago" if days > 0 else f"in {said}"
