"""The time that a question names, as an interval: "in May 2023", "last week", "on Friday", "nächste Woche", "三天后" (pure).

English stands here, other languages in `languages/time_words.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import lru_cache
from re import Match
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from agent_memory.text.languages.time_words import (
    CHARACTERS,
    HINTS,
    Direction,
    day_of_month,
    direction_of,
    foreign_time,
    named_month,
    shifted_unit,
)

_MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december")
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_NUMBERS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10}
_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}

_MONTH = r"(?P<month>" + "|".join(f"{m}|{m[:3]}" for m in _MONTHS) + r"|sept)\.?"
_DAY = r"(?P<day>0?[1-9]|[12]\d|3[01])(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>(?:19|20)\d\d)"
# Bounded, like all repetitions here: a text is read once, and not once more from each of its words.
_BEFORE = r"(?:(?:in|on|during|since|of|from|last|this|the|early|late|mid) |mid-){0,6}"
_MOST_CHARS = 32_768  # some twenty patterns look through them
_COUNT = r"(?P<count>\d{1,3}|" + "|".join(_NUMBERS) + r"|(?:a )?couple of|(?:a )?few)"


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
    return _YEAR_ALONE.search(text) is not None or not _HINTS.isdisjoint(_WORD.findall(text.lower()))


def named_time(text: str, now: datetime, zone: tzinfo = UTC) -> Span | None:
    """The first time that a text names, read in `zone` and relative to `now`; None when it names none.

    "Before", "after", "until" and "since" open the interval, "between" and "from" with a second time stretch it. Of a longer text the first
    32,768 characters are read.
    """
    text = text[:_MOST_CHARS]
    if not _may_name_one(text):
        return None
    today = now.astimezone(zone).date()
    way = direction_of(text)
    found = _place(text, today, "future" if way == "future" else "past")
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
    + "|".join((*_DAYS, *_MONTHS, *_SEASONS))
    + r")s?|(?:on|by|until|since) (?:"
    + "|".join(_DAYS)
    + r"))\b",
    re.IGNORECASE,
)


def names_relative_time(text: str) -> bool:
    """Whether a text names a time that depends on when it is said ("yesterday", "next week"), so that on another day it says another."""
    return _RELATIVE.search(text) is not None


def beside(text: str, span: Span) -> str:
    """What a text says beside the time that it names."""
    return " ".join(text.replace(span.words, " ", 1).split())


Days = tuple[date, date]


Place = tuple[Days, int, int]
"""Days, and where the words that name them begin and end."""


def _first(text: str, today: date, way: Direction) -> Place | None:
    best: Place | None = None
    for pattern, read in _READERS:
        found = pattern.search(text)
        if found is None or (best is not None and best[1] <= found.start()):
            continue
        days = _AHEAD[read](found, today) if way == "future" and read in _AHEAD else read(found, today)
        if days is not None:
            best = (days, found.start(), found.end())
    return best


_RELATION = re.compile(
    rf"\b(?:(?:(?:the|last) )?(?:{_COUNT} )?(?P<unit>day|week|weekend|month|year)s? )?(?P<how>before|after|since|until|till) (?:the )?$",
    re.IGNORECASE,
)
_LENGTH = {"day": 1, "weekend": 7, "week": 7, "month": 31, "year": 366}


def _one_time(text: str, today: date, way: Direction) -> Place | None:
    """The first time, and what stands before it that says how it is meant."""
    found = _first(text, today, way)
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
    length = timedelta(days=min(_LENGTH[unit.lower()] * _counted(m["count"] or "one"), 100_000))
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
    year = re.search(_YEAR, said)
    dated = [] if year is None or re.search(_YEAR, m["first"]) else [f"{m['first']} {year['year']}"]
    for words in (*dated, m["first"]):
        first = _beginning(words, today, way)
        if first is not None and first[2] == len(words) and first[0][0] < last[0][1]:
            return (first[0][0], last[0][1]), m.start(), m.start("second") + last[2]
    return None


def _beginning(text: str, today: date, way: Direction) -> Place | None:
    """The time that a text begins with, also one that needs a preposition elsewhere ("May", "2021", "Monday")."""
    for preposition in ("", "in ", "on "):
        found = _first(preposition + text, today, way)
        if found is not None and found[1] == 0:
            return found[0], 0, found[2] - len(preposition)
    return None


def _counted(said: str) -> int:
    known = " ".join(said.lower().split())
    return 2 if known.endswith("couple of") else 3 if known.endswith("few") else _NUMBERS.get(known) or int(known)


def _midnight(day: date, zone: tzinfo) -> datetime:
    # The first and the last of all days are as good as never; no zone may lead beyond them.
    near = min(max(day, date(1, 1, 3)), date(9999, 12, 29))
    return datetime.combine(near, time(), zone).astimezone(UTC)


def _month_number(name: str) -> int:
    return next(number for number, month in enumerate(_MONTHS, start=1) if month.startswith(name.lower()[:3]))


def _whole_month(year: int, month: int) -> Days:
    return date(year, month, 1), date(year + month // 12, month % 12 + 1, 1)


def _shifted(day: date, months: int) -> date:
    """The first of the month that is some months away."""
    index = day.year * 12 + day.month - 1 + months
    return date(index // 12, index % 12 + 1, 1)


def _full_date(m: Match[str], _: date) -> Days | None:
    return _one_day(int(m["year"]), _month_number(m["month"]), int(m["day"]))


def _one_day(year: int, month: int, day: int) -> Days | None:
    try:
        found = date(year, month, day)
    except ValueError:
        return None
    return found, found + timedelta(days=1)


def _iso_date(m: Match[str], _: date) -> Days | None:
    return _one_day(int(m["year"]), int(m["number"]), int(m["day"]))


def _day_of_month(m: Match[str], today: date) -> Days | None:
    """Without a year the last such day is meant; a memory of the future would be strange."""
    days = _one_day(today.year, _month_number(m["month"]), int(m["day"]))
    return _one_day(today.year - 1, _month_number(m["month"]), int(m["day"])) if days and days[0] > today else days


def _month_of_year(m: Match[str], _: date) -> Days:
    return _whole_month(int(m["year"]), _month_number(m["month"]))


def _last_month_named(m: Match[str], today: date) -> Days:
    month = _month_number(m["month"])
    running = month >= today.month if m["which"].lower() == "last" else month > today.month
    return _whole_month(today.year - running, month)


def _relative(m: Match[str], today: date) -> Days:
    """Last, past, this and next week, month and year. "Past" ends today, the others are calendar units (weeks from Monday)."""
    which, unit = m["which"].lower(), m["unit"].lower()
    if which == "past":
        return today - timedelta(days={"week": 7, "month": 31, "year": 366}[unit]), today + timedelta(days=1)
    back = 1 if which in ("last", "previous") else -1 if which == "next" else 0
    if unit == "week":
        monday = today - timedelta(days=today.weekday() + 7 * back)
        return monday, monday + timedelta(days=7)
    if unit == "month":
        first = _shifted(today, -back)
        return first, _shifted(first, 1)
    return date(today.year - back, 1, 1), date(today.year - back + 1, 1, 1)


def _past_units(m: Match[str], today: date) -> Days:
    """The last three days, weeks, months: up to and with today."""
    length = {"day": 1, "week": 7, "month": 31, "year": 366}[m["unit"].lower()] * _counted(m["count"])
    return max(today, date.min + timedelta(days=length)) - timedelta(days=length), today + timedelta(days=1)


def _weekend(m: Match[str], today: date) -> Days:
    """Saturday and Sunday: those of this week, or the last ones that are over. "The weekend" is the last one that has begun."""
    saturday = today - timedelta(days=today.weekday()) + timedelta(days=5)
    which = (m["which"] or "").lower()
    if which == "next":
        saturday += timedelta(days=7)
    elif which in ("last", "past", "previous") or (not which and saturday > today):
        saturday -= timedelta(days=7)
    return saturday, saturday + timedelta(days=2)


def _month_in_year(m: Match[str], today: date) -> Days:
    """May of last year, last year in May; 2023-05."""
    month = int(m["number"]) if "number" in m.re.groupindex else _month_number(m["month"])
    year = int(m["year"]) if "year" in m.re.groupindex else today.year - (1 if m["which"].lower() == "last" else 0)
    return _whole_month(year, month)


def _season(m: Match[str], today: date) -> Days:
    first = _SEASONS[m["season"].lower()]
    year = int(m["year"]) if m["year"] else today.year
    start = date(year, first, 1)
    if not m["year"] and _shifted(start, 3) > today:
        start = date(year - 1, first, 1)
    return start, _shifted(start, 3)


def _ago(m: Match[str], today: date) -> Days:
    """A span around the day: people round, the more the longer ago."""
    count = _counted(m["count"])
    unit = m["unit"].lower()
    if unit == "day":
        return today - timedelta(days=count), today - timedelta(days=count - 1)
    if unit == "week":
        middle = today - timedelta(weeks=count)
        return middle - timedelta(days=3), middle + timedelta(days=4)
    if unit == "month":
        first = _shifted(today, -min(count, 1200))
        return first, _shifted(first, 1)
    year = today.year - min(count, today.year - 1)
    return date(year, 1, 1), date(year + 1, 1, 1)


def _weekday(m: Match[str], today: date) -> Days:
    back = (today.weekday() - _DAYS.index(m["weekday"].lower()) - 1) % 7 + 1
    found = today - timedelta(days=back)
    return found, found + timedelta(days=1)


def _last_weekday(m: Match[str], today: date) -> Days:
    return _weekday(m, today)


def _coming_weekday(m: Match[str], today: date) -> Days:
    when = today + timedelta(days=(_DAYS.index(m["weekday"].lower()) - today.weekday() - 1) % 7 + 1)
    return when, when + timedelta(days=1)


def _coming_month(m: Match[str], today: date) -> Days:
    return named_month(_month_number(m["month"]), today, "future") if m["which"].lower() == "in" else _last_month_named(m, today)


def _coming_day_of_month(m: Match[str], today: date) -> Days | None:
    days = _one_day(today.year, _month_number(m["month"]), int(m["day"]))
    return _one_day(today.year + 1, _month_number(m["month"]), int(m["day"])) if days and days[0] < today else days


def _next_month_named(m: Match[str], today: date) -> Days:
    month = _month_number(m["month"])
    return _whole_month(today.year + (month <= today.month), month)


def _in_units(m: Match[str], today: date) -> Days:
    return shifted_unit(m["unit"].lower(), _counted(m["count"]), today)


def _bare_day(m: Match[str], today: date) -> Days | None:
    return day_of_month(int(m["day"]), today, "past")


def _coming_bare_day(m: Match[str], today: date) -> Days | None:
    return day_of_month(int(m["day"]), today, "future")


def _near_day(m: Match[str], today: date) -> Days:
    said = " ".join(m[0].lower().split())
    if said.endswith("after tomorrow"):
        return today + timedelta(days=2), today + timedelta(days=3)
    back = -1 if said == "tomorrow" else {"yesterday": 1, "last night": 1}.get(said, 2 if said.endswith("before yesterday") else 0)
    return today - timedelta(days=back), today - timedelta(days=back - 1)


def _compiled(*pairs: tuple[str, Callable[[Match[str], date], Days | None]]) -> list[tuple[re.Pattern[str], Callable[..., Days | None]]]:
    return [(re.compile(rf"\b{pattern}\b", re.IGNORECASE), read) for pattern, read in pairs]


# Of two that begin at the same place the first here wins: the more exact ones come first.
_READERS = _compiled(
    (rf"{_BEFORE}{_YEAR}-(?P<number>0[1-9]|1[0-2])-(?P<day>0[1-9]|[12]\d|3[01])", _iso_date),
    (rf"(?:(?:in|during|since|from|of) )?{_YEAR}-(?P<number>0[1-9]|1[0-2])(?![-\d])", _month_in_year),
    (rf"{_BEFORE}{_DAY}(?: of)? {_MONTH},? {_YEAR}", _full_date),
    (rf"{_BEFORE}{_MONTH} {_DAY},? {_YEAR}", _full_date),
    (rf"{_BEFORE}{_MONTH},?(?: of)? {_YEAR}", _month_of_year),
    (rf"(?:in )?{_MONTH} (?:of )?(?P<which>last|this) year", _month_in_year),
    (rf"(?P<which>last|this) year in {_MONTH}", _month_in_year),
    (rf"{_BEFORE}{_DAY}(?: of)? {_MONTH}", _day_of_month),
    (rf"{_BEFORE}{_MONTH} {_DAY}", _day_of_month),
    (rf"(?P<which>last|this|in|during|since) (?:early |late |mid[- ])?(?!may (?:i|we|he|she|they|it|be)\b){_MONTH}", _last_month_named),
    (rf"(?:last |this |in |during )?(?:the )?(?P<season>spring|summer|autumn|fall|winter) (?:of )?{_YEAR}", _season),
    (r"(?:last|this|in|during) (?:the )?(?P<season>spring|summer|autumn|fall|winter)(?P<year>)", _season),
    (r"(?P<which>last|previous|past|this|next) (?P<unit>week|month|year)(?! before| after)", _relative),
    (rf"(?:(?:in|over|during|within) )?(?:the )?(?:last|past|previous) {_COUNT} (?P<unit>day|week|month|year)s?", _past_units),
    (r"(?:(?:on|over|at|during) the|(?P<which>last|past|previous|this|next)) weekend(?! before| after)", _weekend),
    (rf"(?<!half ){_COUNT} (?P<unit>day|week|month|year)s? ago", _ago),
    (r"half a year ago", lambda _, today: (_shifted(today, -7), _shifted(today, -4))),
    (
        r"(?:(?:the )?day (?:before yesterday|after tomorrow)|yesterday|today|tonight|tomorrow|last night"
        r"|this (?:morning|afternoon|evening))",
        _near_day,
    ),
    (r"(?:next|this coming|this|coming) (?P<weekday>" + "|".join(_DAYS) + ")", _coming_weekday),
    (r"(?:last|this past|past) (?P<weekday>" + "|".join(_DAYS) + ")", _last_weekday),
    (r"(?:(?:on|by|until|for|since) )?(?P<weekday>" + "|".join(_DAYS) + ")", _weekday),
    (rf"next {_MONTH}", _next_month_named),
    (rf"in {_COUNT} (?P<unit>day|week|month|year)s?(?:' time)?", _in_units),
    (r"on the (?P<day>[12]?\d|3[01])(?:st|nd|rd|th)(?! (?:of|floor|street|century))", _bare_day),
    (rf"(?:in|during|since|of|from) {_YEAR}", lambda m, _: (date(int(m["year"]), 1, 1), date(int(m["year"]) + 1, 1, 1))),
)

# Those that mean another day when a text looks ahead.
_AHEAD: dict[Callable[..., Days | None], Callable[[Match[str], date], Days | None]] = {
    _weekday: _coming_weekday,
    _last_month_named: _coming_month,
    _day_of_month: _coming_day_of_month,
    _bare_day: _coming_bare_day,
}

# Each of these patterns needs a year or at least one of these in an ASCII text: other numbers name a time beside such a word only.
_YEAR_ALONE = re.compile(rf"\b{_YEAR}\b")
_WORD = re.compile(r"[^\W\d_]+")
_HINTS = frozenset(
    [
        *_MONTHS,
        *(month[:3] for month in _MONTHS),
        "sept",
        *_DAYS,
        *_SEASONS,
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
