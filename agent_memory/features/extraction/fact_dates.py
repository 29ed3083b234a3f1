"""Assign dates to facts, and check them against the cited messages."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, tzinfo

from agent_memory.foundation.text.dates.named_times import moments, only_time
from agent_memory.foundation.text.quotations import without_quotations

# A time zone can shift a date by a day, and some models count the first day, so a date may be wrong by two days.
_SLIP = timedelta(days=2)


def instant(value: str | None, zone: tzinfo) -> datetime | None:
    """Convert an ISO date or time to UTC, or return None outside the years 1 to 9999.

    A date becomes the start of that day in `zone`.
    """
    if value is None:
        return None
    moment = datetime.fromisoformat(value)
    try:
        return (moment.replace(tzinfo=zone) if moment.tzinfo is None else moment).astimezone(UTC)
    except (OverflowError, ValueError):
        return None


def event_day(answered: datetime | None, texts: Sequence[str], stated_at: datetime, zone: tzinfo, *, now: datetime) -> datetime | None:
    """Return the model's event date, corrected if the cited messages mention a single date.

    Use the mentioned date if the model gave none, was off by at most two days, or counted from
    `now` instead of `stated_at`.
    """
    today = stated_at.astimezone(zone).date()
    named = {(each.first, each.last): each for text in texts if (each := only_time(without_quotations(text), today)) is not None}
    if len(named) != 1:
        return answered
    time = next(iter(named.values()))
    if time.relation != "on":
        return answered
    start, end = moments(time, zone)
    exact = time.first == time.last
    if answered is None:
        return start if exact else None
    if start <= answered < end:
        return answered
    off = any(abs(answered - other) <= _SLIP for other in (start, now + (start - stated_at)))
    return start if off and exact else answered
