"""Instants as text and from Redis' clock, and days."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, time, tzinfo
from typing import Any

# A day without a time of day is this moment of it, which belongs to that day from Honolulu to Auckland.
_IN_DAY = time(10, 30, tzinfo=UTC)


def iso(moment: datetime) -> str:
    """UTC ISO 8601."""
    return (moment if moment.tzinfo is UTC else moment.astimezone(UTC)).isoformat()


def from_micros(micros: int) -> datetime:
    """A time in µs since 1970."""
    return datetime.fromtimestamp(micros / 1e6, UTC)


def calendar_day(moment: datetime, zone: tzinfo) -> date:
    """The day of a moment; one that is midnight in UTC is that day in each zone, for so days are written."""
    return as_in_zone(moment, zone).date()


def as_in_zone(moment: datetime, zone: tzinfo) -> datetime:
    """Return a moment in a zone; midnight in UTC is a whole day, and becomes the midnight of that day in the zone."""
    at = moment.astimezone(UTC)
    return at.replace(tzinfo=zone) if (at.hour, at.minute, at.second, at.microsecond) == (0, 0, 0, 0) else moment.astimezone(zone)


def stated_date(metadata: Mapping[str, Any]) -> datetime | None:
    """The `date` in metadata, if it is one; of a day alone a moment within it. A time without zone is one in UTC."""
    value = metadata.get("date")
    if not isinstance(value, str):
        return None
    try:
        return datetime.combine(date.fromisoformat(value), _IN_DAY)
    except ValueError:
        pass
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def said_at(metadata: Any, created_at: datetime) -> datetime:
    """When a message was said: on the `date` of its metadata, unless that lies ahead, or is the day that it was made on; else then."""
    stated = stated_date(metadata) if isinstance(metadata, Mapping) else None
    if stated is None or stated > datetime.now(UTC) or stated.date() == created_at.astimezone(UTC).date():
        return created_at
    return stated
