"""The time that a question names, as an interval: "in May 2023", "last week", "on 8 May", "three weeks ago". English, pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from re import Match
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

_MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december")
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_NUMBERS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10}
_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}

_MONTH = r"(?P<month>" + "|".join(f"{m}|{m[:3]}" for m in _MONTHS) + r"|sept)\.?"
_DAY = r"(?P<day>0?[1-9]|[12]\d|3[01])(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>(?:19|20)\d\d)"
_BEFORE = r"(?:(?:in|on|during|since|of|from|last|this|the) )*"
_COUNT = r"(?P<count>\d{1,3}|" + "|".join(_NUMBERS) + r"|a couple of|a few)"


@dataclass(frozen=True, slots=True)
class Span:
    """A half-open interval of time in UTC, and the words that named it."""

    start: datetime
    end: datetime
    words: str


def zone_of(name: str | None) -> tzinfo:
    """The IANA time zone of a name, UTC for none. Raises ValueError for an unknown one."""
    if name is None:
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError(f"{name} is no IANA time zone, such as Europe/Berlin") from error


def named_time(text: str, now: datetime, zone: tzinfo = UTC) -> Span | None:
    """The first time that a text names, read in `zone` and relative to `now`; None when it names none."""
    today = now.astimezone(zone).date()
    best: tuple[int, Span] | None = None
    for pattern, read in _READERS:
        found = pattern.search(text)
        if found is None or (best is not None and best[0] <= found.start()):
            continue
        days = read(found, today)
        if days is not None:
            best = (found.start(), Span(_midnight(days[0], zone), _midnight(days[1], zone), found[0]))
    return None if best is None else best[1]


Days = tuple[date, date]


def _midnight(day: date, zone: tzinfo) -> datetime:
    return datetime.combine(day, time(), zone).astimezone(UTC)


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
    """Last, past and this week, month and year. "Past" ends today, the others are calendar units (weeks from Monday)."""
    which, unit = m["which"].lower(), m["unit"].lower()
    if which == "past":
        return today - timedelta(days={"week": 7, "month": 31, "year": 366}[unit]), today + timedelta(days=1)
    back = 1 if which in ("last", "previous") else 0
    if unit == "week":
        monday = today - timedelta(days=today.weekday() + 7 * back)
        return monday, monday + timedelta(days=7)
    if unit == "month":
        first = _shifted(today, -back)
        return first, _shifted(first, 1)
    return date(today.year - back, 1, 1), date(today.year - back + 1, 1, 1)


def _season(m: Match[str], today: date) -> Days:
    first = _SEASONS[m["season"].lower()]
    year = int(m["year"]) if m["year"] else today.year
    start = date(year, first, 1)
    if not m["year"] and _shifted(start, 3) > today:
        start = date(year - 1, first, 1)
    return start, _shifted(start, 3)


def _ago(m: Match[str], today: date) -> Days:
    """A span around the day: people round, the more the longer ago."""
    said = m["count"].lower()
    count = 2 if said == "a couple of" else 3 if said == "a few" else _NUMBERS.get(said) or int(said)
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


def _near_day(m: Match[str], today: date) -> Days:
    back = {"today": 0, "tonight": 0, "yesterday": 1, "last night": 1}.get(" ".join(m[0].lower().split()), 2)
    return today - timedelta(days=back), today - timedelta(days=back - 1)


def _compiled(*pairs: tuple[str, Callable[[Match[str], date], Days | None]]) -> list[tuple[re.Pattern[str], Callable[..., Days | None]]]:
    return [(re.compile(rf"\b{pattern}\b", re.IGNORECASE), read) for pattern, read in pairs]


# Of two that begin at the same place the first here wins: the more exact ones come first.
_READERS = _compiled(
    (rf"{_BEFORE}{_YEAR}-(?P<number>0[1-9]|1[0-2])-(?P<day>0[1-9]|[12]\d|3[01])", _iso_date),
    (rf"{_BEFORE}{_DAY}(?: of)? {_MONTH},? {_YEAR}", _full_date),
    (rf"{_BEFORE}{_MONTH} {_DAY},? {_YEAR}", _full_date),
    (rf"{_BEFORE}{_MONTH},?(?: of)? {_YEAR}", _month_of_year),
    (rf"{_BEFORE}{_DAY}(?: of)? {_MONTH}", _day_of_month),
    (rf"{_BEFORE}{_MONTH} {_DAY}", _day_of_month),
    (rf"(?P<which>last|this|in|during|since) (?!may (?:i|we|he|she|they|it|be)\b){_MONTH}", _last_month_named),
    (rf"(?:last |this |in |during )?(?:the )?(?P<season>spring|summer|autumn|fall|winter) (?:of )?{_YEAR}", _season),
    (r"(?:last|this|in|during) (?:the )?(?P<season>spring|summer|autumn|fall|winter)(?P<year>)", _season),
    (r"(?P<which>last|previous|past|this) (?P<unit>week|month|year)", _relative),
    (rf"{_COUNT} (?P<unit>day|week|month|year)s? ago", _ago),
    (r"(?:the day before yesterday|yesterday|today|tonight|last night)", _near_day),
    (r"(?:last|on|this past) (?P<weekday>" + "|".join(_DAYS) + ")", _weekday),
    (rf"(?:in|during|since|of|from) {_YEAR}", lambda m, _: (date(int(m["year"]), 1, 1), date(int(m["year"]) + 1, 1, 1))),
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
