"""Dates of facts, in the user's zone and checked against their messages' times (pure)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, tzinfo

from agent_memory.foundation.text.dates.named_times import moments, only_time
from agent_memory.foundation.text.quotations import without_quotations

# A time zone shifts by a day, and some models count the first day.
_SLIP = timedelta(days=2)


def instant(value: str | None, zone: tzinfo) -> datetime | None:
    """Return an ISO date or time in UTC, a day as its first moment in `zone`; None beyond the calendar."""
    if value is None:
        return None
    moment = datetime.fromisoformat(value)
    try:
        return (moment.replace(tzinfo=zone) if moment.tzinfo is None else moment).astimezone(UTC)
    except (OverflowError, ValueError):
        return None


def event_day(answered: datetime | None, texts: Sequence[str], stated_at: datetime, zone: tzinfo, *, now: datetime) -> datetime | None:
    """Return the day of an event: the model's, or that of the only time the cited messages name.

    The model's is corrected if off by a day or two, or if it was computed from `now` instead of the message's time.
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
