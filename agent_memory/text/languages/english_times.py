"""The times that English names, as days: "in May 2023", "last week", "on Friday", "the weekend" (pure)."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, timedelta
from re import Match

from agent_memory.text.languages.time_words import MOST_CHARS, Days, Direction, Place, day_of_month, named_month, shifted_unit

MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december")
DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_NUMBERS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10}
SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}

_MONTH = r"(?P<month>" + "|".join(f"{m}|{m[:3]}" for m in MONTHS) + r"|sept)\.?"
_DAY = r"(?P<day>0?[1-9]|[12]\d|3[01])(?:st|nd|rd|th)?"
YEAR = r"(?P<year>(?:19|20)\d\d)"
# Bounded, like all repetitions here: a text is read once, and not once more from each of its words.
_BEFORE = r"(?:(?:in|on|during|since|of|from|last|this|the|early|late|mid) |mid-){0,6}"
COUNT = r"(?P<count>\d{1,3}|" + "|".join(_NUMBERS) + r"|(?:a )?couple of|(?:a )?few)"


_NOTHING_COUNTED = r"\s*(?:$|[^\w\s]|(?:at|in|because|instead|and|but|so|due|as|now|then|already|if|when|since|with|or)\b)"


def english_time(text: str, today: date, way: Direction) -> Place | None:
    """The first time that the first 32,768 characters of a text name, and where its words begin and end.

    `way` decides where a weekday or a month may lie ahead.
    """
    best: Place | None = None
    for pattern, read in _READERS:
        found = pattern.search(text, 0, MOST_CHARS)
        if found is None or (best is not None and best[1] <= found.start()):
            continue
        days = _AHEAD[read](found, today) if way == "future" and read in _AHEAD else read(found, today)
        if days is not None:
            best = (days, found.start(), found.end())
    return best


def counted(said: str) -> int:
    known = " ".join(said.lower().split())
    return 2 if known.endswith("couple of") else 3 if known.endswith("few") else _NUMBERS.get(known) or int(known)


def _month_number(name: str) -> int:
    return next(number for number, month in enumerate(MONTHS, start=1) if month.startswith(name.lower()[:3]))


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
    length = {"day": 1, "week": 7, "month": 31, "year": 366}[m["unit"].lower()] * counted(m["count"])
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
    first = SEASONS[m["season"].lower()]
    year = int(m["year"]) if m["year"] else today.year
    start = date(year, first, 1)
    if not m["year"] and _shifted(start, 3) > today:
        start = date(year - 1, first, 1)
    return start, _shifted(start, 3)


def _ago(m: Match[str], today: date) -> Days:
    """A span around the day: people round, the more the longer ago."""
    count = counted(m["count"])
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
    back = (today.weekday() - DAYS.index(m["weekday"].lower()) - 1) % 7 + 1
    found = today - timedelta(days=back)
    return found, found + timedelta(days=1)


def _last_weekday(m: Match[str], today: date) -> Days:
    return _weekday(m, today)


def _coming_weekday(m: Match[str], today: date) -> Days:
    when = today + timedelta(days=(DAYS.index(m["weekday"].lower()) - today.weekday() - 1) % 7 + 1)
    return when, when + timedelta(days=1)


_COMING = frozenset(["in", "for", "by", "until", "till", "to"])


def _coming_month(m: Match[str], today: date) -> Days:
    return named_month(_month_number(m["month"]), today, "future") if m["which"].lower() in _COMING else _last_month_named(m, today)


def _coming_day_of_month(m: Match[str], today: date) -> Days | None:
    days = _one_day(today.year, _month_number(m["month"]), int(m["day"]))
    return _one_day(today.year + 1, _month_number(m["month"]), int(m["day"])) if days and days[0] < today else days


def _next_month_named(m: Match[str], today: date) -> Days:
    month = _month_number(m["month"])
    return _whole_month(today.year + (month <= today.month), month)


def _in_units(m: Match[str], today: date) -> Days:
    return shifted_unit(m["unit"].lower(), counted(m["count"]), today)


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
    (rf"{_BEFORE}{YEAR}-(?P<number>0[1-9]|1[0-2])-(?P<day>0[1-9]|[12]\d|3[01])", _iso_date),
    (rf"(?:(?:in|during|since|from|of) )?{YEAR}-(?P<number>0[1-9]|1[0-2])(?![-\d])", _month_in_year),
    (rf"{_BEFORE}{_DAY}(?: of)? {_MONTH},? {YEAR}", _full_date),
    (rf"{_BEFORE}{_MONTH} {_DAY},? {YEAR}", _full_date),
    (rf"{_BEFORE}{_MONTH},?(?: of)? {YEAR}", _month_of_year),
    (rf"(?:in )?{_MONTH} (?:of )?(?P<which>last|this) year", _month_in_year),
    (rf"(?P<which>last|this) year in {_MONTH}", _month_in_year),
    (rf"{_BEFORE}{_DAY}(?: of)? {_MONTH}", _day_of_month),
    (rf"{_BEFORE}{_MONTH} {_DAY}", _day_of_month),
    (rf"(?P<which>last|this|in|during|since) (?:early |late |mid[- ])?(?!may (?:i|we|he|she|they|it|be)\b){_MONTH}", _last_month_named),
    # April, May, June are names, too, and "mar" and the like are words.
    (rf"(?P<which>for|by|until|till|to) (?:early |late |mid[- ])?(?!apr|may|jun(?!i)|\w{{3}}\b){_MONTH}", _last_month_named),
    (rf"(?:last |this |in |during )?(?:the )?(?P<season>spring|summer|autumn|fall|winter) (?:of )?{YEAR}", _season),
    (r"(?:last|this|in|during) (?:the )?(?P<season>spring|summer|autumn|fall|winter)(?P<year>)", _season),
    (r"(?P<which>last|previous|past|this|next) (?P<unit>week|month|year)(?! before| after)", _relative),
    (rf"(?:(?:in|over|during|within) )?(?:the )?(?:last|past|previous) {COUNT} (?P<unit>day|week|month|year)s?", _past_units),
    (r"(?:(?:on|over|at|during) the|(?P<which>last|past|previous|this|next)) weekend(?! before| after)", _weekend),
    (rf"(?<!half ){COUNT} (?P<unit>day|week|month|year)s? ago", _ago),
    (r"half a year ago", lambda _, today: (_shifted(today, -7), _shifted(today, -4))),
    (
        r"(?:(?:the )?day (?:before yesterday|after tomorrow)|yesterday|today|tonight|tomorrow|last night"
        r"|this (?:morning|afternoon|evening))",
        _near_day,
    ),
    (r"(?:next|this coming|this|coming) (?P<weekday>" + "|".join(DAYS) + ")", _coming_weekday),
    (r"(?:last|this past|past) (?P<weekday>" + "|".join(DAYS) + ")", _last_weekday),
    (r"(?:(?:on|by|until|for|since) )?(?:" + "|".join(DAYS) + r"),? (?:the )?(?P<day>[12]?\d|3[01])(?:st|nd|rd|th)(?! of)", _bare_day),
    (r"(?:(?:on|by|until|for|since) )?(?P<weekday>" + "|".join(DAYS) + ")", _weekday),
    (rf"next {_MONTH}", _next_month_named),
    (rf"in {COUNT} (?P<unit>day|week|month|year)s?(?:' time)?", _in_units),
    (r"on the (?P<day>[12]?\d|3[01])(?:st|nd|rd|th)(?! (?:of|floor|street|century))", _bare_day),
    # "For the 1st time", "to the 3rd floor": what counts something is no day.
    (rf"(?:for|to|until|till|by) the (?P<day>[12]?\d|3[01])(?:st|nd|rd|th)(?={_NOTHING_COUNTED})", _bare_day),
    (rf"(?:in|during|since|of|from) {YEAR}", lambda m, _: (date(int(m["year"]), 1, 1), date(int(m["year"]) + 1, 1, 1))),
)

# Those that mean another day when a text looks ahead.
_AHEAD: dict[Callable[..., Days | None], Callable[[Match[str], date], Days | None]] = {
    _weekday: _coming_weekday,
    _last_month_named: _coming_month,
    _day_of_month: _coming_day_of_month,
    _bare_day: _coming_bare_day,
}
