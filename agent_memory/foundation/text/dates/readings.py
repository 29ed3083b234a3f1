"""Return the possible meanings of a date as intervals of days."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from re import Match, Pattern
from typing import Literal, NamedTuple

from agent_memory.foundation.text.dates.tables import Table, number

Unit = Literal["day", "week", "month", "year"]
Tense = Literal["past", "future", "present", "unsure", "none"]
UNITS: Sequence[Unit] = ("day", "week", "month", "year")

# Without a year and a tense, a date means the nearer date, if that is within this time.
_NEAR = timedelta(days=61)
_DAYS_NEAR = 31
_MOST_UNITS = {"day": 3650, "week": 520, "month": 240, "year": 100}


class Reading(NamedTuple):
    """A possible meaning of a date, with its first and last day (inclusive)."""

    first: date
    last: date
    unit: Unit


def readings(kind: str, match: Match[str], table: Table, today: date, offset: int, tense: Tense, weekday: int | None) -> Sequence[Reading]:
    """Return all possible meanings of a match. For `weekday`, 0 is Monday."""
    groups = {name: text for name, text in match.groupdict().items() if text is not None}
    if "weekday" in groups:
        weekday = _index(table.weekdays, groups["weekday"])
    if kind == "near":
        return [_day(today + timedelta(days=offset))]
    if kind == "date":
        return _dates(groups, table, today, tense, weekday)
    if kind == "month":
        return _months(groups, table, today, tense)
    if kind == "year":
        year = _year(groups, today)
        return [] if year is None else [_of_year(year)]
    if kind == "weekday" and weekday is not None:
        return _weekdays(groups, weekday, today, tense)
    if kind == "numbered_weekday" and weekday is not None:
        return _numbered_weekdays(table.count(groups["day"]), weekday, today, tense)
    if kind == "day_of_month":
        month = calendar_unit("month", _step(groups), today).first
        return [_day(month.replace(day=table.count(groups["day"])))] if "first" not in groups else []
    if kind == "calendar":
        unit = next((unit for unit in ("week", "month") if unit in groups), None) or _unit(groups, table)
        return [calendar_unit(unit, _step(groups), today)]
    if kind == "weekend":
        return _weekends(groups, today, tense)
    return _shifted(kind, groups, table, today, tense)


def _day(day: date) -> Reading:
    return Reading(day, day, "day")


def _of_month(year: int, month: int) -> Reading:
    following = date(year + month // 12, month % 12 + 1, 1)
    return Reading(date(year, month, 1), following - timedelta(days=1), "month")


def _of_year(year: int) -> Reading:
    return Reading(date(year, 1, 1), date(year, 12, 31), "year")


def _index(patterns: Sequence[Pattern[str]], name: str) -> int:
    return next(index for index, pattern in enumerate(patterns) if pattern.match(name))


def _unit(groups: dict[str, str], table: Table) -> Unit:
    return next(unit for unit in UNITS if table.units[unit].match(groups["unit"]))


def _step(groups: dict[str, str]) -> int:
    steps = {"last2": -2, "last": -1, "this": 0, "next": 1, "next2": 2}
    return next(step for name, step in steps.items() if name in groups)


def _year(groups: dict[str, str], today: date) -> int | None:
    if "year" in groups:
        return number(groups["year"])
    steps = {"ylast": -1, "ythis": 0, "ynext": 1, "last": -1, "this": 0, "next": 1}
    step = next((step for name, step in steps.items() if name in groups), None)
    return None if step is None else today.year + step


def _dates(groups: dict[str, str], table: Table, today: date, tense: Tense, weekday: int | None) -> list[Reading]:
    if "a" in groups:
        return _slashed(int(groups["a"]), int(groups["b"]), int(groups["year"]))
    month = int(groups["m"]) if "m" in groups else _index(table.months, groups["month"]) + 1
    first, last = (table.count(groups[name]) if name in groups else None for name in ("first", "day"))
    year = _year(groups, today)
    years = [today.year - 1, today.year, today.year + 1] if year is None else [year]
    candidates: list[Reading] = []
    for each in years:
        try:
            reading = Reading(date(each, month, first or last or 0), date(each, month, last or 0), "day")
        except ValueError:
            continue
        if reading.first <= reading.last and (weekday is None or weekday == reading.first.weekday()):
            candidates.append(reading)
    return candidates if year is not None or weekday is not None else _likely(candidates, today, tense)


def _slashed(a: int, b: int, year: int) -> list[Reading]:
    days: dict[date, None] = {}
    for day, month in ((a, b), (b, a)):
        try:
            days[date(year, month, day)] = None
        except ValueError:
            continue
    return [_day(day) for day in days]


def _months(groups: dict[str, str], table: Table, today: date, tense: Tense) -> list[Reading]:
    month = _index(table.months, groups["month"]) + 1
    if "year" in groups or any(name in groups for name in ("ylast", "ythis", "ynext")):
        year = _year(groups, today)
        return [] if year is None else [_of_month(year, month)]
    candidates = [_of_month(today.year + step, month) for step in (-1, 0, 1)]
    # In November, "last May" may mean this year's or last year's.
    is_relative = any(name in groups for name in ("last", "this", "next"))
    return candidates if is_relative or month == today.month or tense not in ("past", "future") else _likely(candidates, today, tense)


def _likely(candidates: list[Reading], today: date, tense: Tense) -> list[Reading]:
    """Choose the most likely readings based on the tense and the distance from today."""
    behind = max((each for each in candidates if each.first < today), default=None)
    ahead = min((each for each in candidates if each.last >= today), default=None)
    if behind is None or ahead is None or (ahead.first <= today <= ahead.last):
        return [ahead or candidates[0]] if candidates else []
    back, on = today - behind.first, ahead.first - today
    if tense in ("past", "future"):
        chosen, distance = (behind, back) if tense == "past" else (ahead, on)
        # "Scored seats for 18 July": the verb's tense is not the event's. So a tense that contradicts the nearer date decides nothing.
        return [chosen] if distance == min(back, on) else [behind, ahead]
    near = behind if back < on else ahead
    return [near] if min(back, on) <= _NEAR else [behind, ahead]


def _weekdays(groups: dict[str, str], weekday: int, today: date, tense: Tense) -> list[Reading]:
    # "Last" and "next" are unambiguous if the nearest such day is not in the current week.
    monday = today - timedelta(days=today.weekday())
    weeks = {"lastweek2": -2, "lastweek": -1, "thisweek": 0, "nextweek": 1, "nextweek2": 2}
    for name, step in weeks.items():
        if name in groups:
            return [_day(monday + timedelta(days=7 * step + weekday))]
    behind = today - timedelta(days=(today.weekday() - weekday - 1) % 7 + 1)
    ahead = today + timedelta(days=(weekday - today.weekday() - 1) % 7 + 1)
    if "past" in groups or "coming" in groups:
        return [_day(behind if "past" in groups else ahead)]
    if "last" in groups:
        return [_day(behind)] if behind < monday else [_day(behind), _day(behind - timedelta(days=7))]
    if "next" in groups:
        return [_day(ahead)] if ahead >= monday + timedelta(days=7) else [_day(ahead), _day(ahead + timedelta(days=7))]
    if "this" in groups:
        this = monday + timedelta(days=weekday)
        return [_day(this)] if (this >= today and tense != "past") or (this < today and tense == "past") else []
    return [_day(behind)] if tense == "past" else [_day(ahead)] if tense == "future" else [_day(behind), _day(ahead)]


def _numbered_weekdays(day: int, weekday: int, today: date, tense: Tense) -> list[Reading]:
    """Return the days near today that match a phrase such as "Friday the 13th"."""
    near = (today + timedelta(days=distance) for distance in range(-_DAYS_NEAR, _DAYS_NEAR + 1))
    days = [each for each in near if each.day == day and each.weekday() == weekday]
    if len(days) > 1 and tense in ("past", "future"):
        days = days[:1] if tense == "past" else days[-1:]
    return list(map(_day, days))


def calendar_unit(unit: Unit | str, step: int, today: date) -> Reading:
    """Return the calendar unit that is `step` units after the current one.

    Weeks start on Monday.
    """
    if unit == "day":
        return _day(today + timedelta(days=step))
    if unit == "week":
        monday = today - timedelta(days=today.weekday() - 7 * step)
        return Reading(monday, monday + timedelta(days=6), "week")
    if unit == "month":
        index = today.year * 12 + today.month - 1 + step
        return _of_month(index // 12, index % 12 + 1)
    return _of_year(today.year + step)


def _weekends(groups: dict[str, str], today: date, tense: Tense) -> list[Reading]:
    saturday = today - timedelta(days=today.weekday() - 5)
    last, this, following = (
        Reading(day, day + timedelta(days=1), "week") for day in (saturday + timedelta(days=7 * step) for step in (-1, 0, 1))
    )
    if "last" in groups:
        return [last]
    if any(name in groups for name in ("next", "next2", "coming")):
        return [this, following]
    if today >= saturday or tense == "future":
        return [this]
    if "this" in groups:
        return [this] if tense != "past" else [last, this]
    return [last] if tense == "past" else [last, this]


def _shifted(kind: str, groups: dict[str, str], table: Table, today: date, tense: Tense) -> list[Reading]:
    unit, count = _unit(groups, table), table.count(groups["count"])
    if not 0 < count <= _MOST_UNITS[unit] or (kind == "ahead" and tense in ("past", "unsure")):
        # "I read it in two days" is a duration.
        return []
    return [calendar_unit(unit, -count if kind == "ago" else count, today)]
