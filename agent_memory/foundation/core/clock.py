"""Parse and format times and dates."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, time, tzinfo
from email.utils import parsedate_to_datetime
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from agent_memory.foundation.core.notices import add_notice

# A number of nine or more digits is a Unix time. From 1e11, it is in milliseconds: in seconds, 1e11 would be in the
# year 5138.
_UNIX_TIME = re.compile(r"-?\d{9,16}(?:\.\d{1,9})?")
_MILLISECONDS = 1e11
_LEAST = 1e7
_ORDINAL = re.compile(r"\d{4}-\d{3}")
_MONTH = re.compile(r"[A-Za-z]{3}")
_FIRST_DAY, _LAST_DAY = 1000_01_01, 9999_12_31
_MOST_SHOWN = 80
# A date without a time becomes 10:30 UTC, which is the same day from Honolulu to Auckland.
_IN_DAY = time(10, 30, tzinfo=UTC)


def iso(moment: datetime) -> str:
    """Return the moment in UTC as an ISO 8601 string."""
    return (moment if moment.tzinfo is UTC else moment.astimezone(UTC)).isoformat()


def from_micros(micros: int) -> datetime:
    """Convert microseconds since 1970 to a UTC datetime."""
    return datetime.fromtimestamp(micros / 1e6, UTC)


def zone_of(name: str | None) -> tzinfo:
    """Return an IANA time zone, or UTC for None. Raises ValueError."""
    if name is None:
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError(f"{name} is not an IANA time zone, such as Europe/Berlin") from error


def calendar_day(moment: datetime, zone: tzinfo) -> date:
    """Return a moment's date in a time zone. For midnight UTC, keep the date."""
    return as_in_zone(moment, zone).date()


def as_in_zone(moment: datetime, zone: tzinfo) -> datetime:
    """Convert a moment to a time zone. Midnight UTC becomes midnight in the zone."""
    at = moment.astimezone(UTC)
    return at.replace(tzinfo=zone) if (at.hour, at.minute, at.second, at.microsecond) == (0, 0, 0, 0) else local_time(at, zone)


def local_time(moment: datetime, zone: tzinfo) -> datetime:
    """Convert a moment to a time zone.

    If the result would fall outside the years 1 to 9999, keep the clock time instead.
    """
    try:
        return moment.astimezone(zone)
    except OverflowError:
        return moment.replace(tzinfo=zone)


def stated_date(metadata: Mapping[str, Any]) -> datetime | None:
    """Return the `date` in metadata, or None if it is missing or invalid.

    The default time zone is UTC. Accepts ISO 8601, RFC 822, and seconds or milliseconds since 1970.
    """
    value = metadata.get("date")
    try:
        return _read_text(value.strip()) if isinstance(value, str) else _read_number(value)
    except (ValueError, TypeError, OverflowError, OSError):
        return None


def note_unreadable_dates(metadata: Iterable[Any]) -> None:
    """Add a notice for each metadata `date` that cannot be parsed."""
    for each in metadata:
        value = each.get("date") if isinstance(each, Mapping) else None
        if value not in (None, "") and stated_date(each) is None:
            value_text = repr(value[:_MOST_SHOWN]) if isinstance(value, str) else f"a value of type {type(value).__name__}"
            add_notice(f"metadata.date: {value_text} is not a valid date and is ignored: use ISO 8601, RFC 822 or Unix time")


def _read_text(text: str) -> datetime:
    if len(text) > _MOST_SHOWN:
        raise ValueError("too long for a date")
    if _UNIX_TIME.fullmatch(text):
        return _read_number(float(text))
    try:
        return datetime.combine(date.fromisoformat(text), _IN_DAY)
    except ValueError:
        pass
    if _ORDINAL.fullmatch(text):
        return datetime.combine(datetime.strptime(text, "%Y-%j").date(), _IN_DAY)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        if not _MONTH.search(text):
            raise
        return _read_rfc(text)
    return _in_utc(moment)


def _read_rfc(text: str) -> datetime:
    try:
        return _in_utc(parsedate_to_datetime(text))
    except (ValueError, TypeError):
        # parsedate_to_datetime requires a time of day.
        return datetime.combine(parsedate_to_datetime(f"{text} 00:00").date(), _IN_DAY)


def _in_utc(moment: datetime) -> datetime:
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)


def _read_number(value: Any) -> datetime:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError("no number")
    if abs(value) < _LEAST:
        raise ValueError("looks like a year or a count, not a time")
    if _FIRST_DAY <= value <= _LAST_DAY and value == int(value):
        # 20231114 is a day, not a Unix time in August 1970.
        return datetime.combine(date.fromisoformat(str(int(value))), _IN_DAY)
    return datetime.fromtimestamp(value / 1000 if abs(value) >= _MILLISECONDS else value, UTC)


def statement_time(metadata: Any, created_at: datetime) -> datetime:
    """Return when a message was stated: the `date` in its metadata, or `created_at`.

    Ignore a date that is invalid, in the future, or on the same UTC day as `created_at`.
    """
    stated_at = stated_date(metadata) if isinstance(metadata, Mapping) else None
    if stated_at is None or stated_at > datetime.now(UTC) or stated_at.date() == created_at.astimezone(UTC).date():
        return created_at
    return stated_at
