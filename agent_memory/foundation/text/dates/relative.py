"""Find and replace relative times, such as "yesterday"."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta

from agent_memory.foundation.text.dates.named_times import Mention, NamedTime, mentions, midnight
from agent_memory.foundation.text.dates.readings import UNITS, Unit, calendar_unit
from agent_memory.foundation.text.quotations import quotations

_SOME_DAY = date(2024, 5, 15)
_LAST_DAY = date(9998, 12, 31)
_WORDS: dict[Unit, str] = {
    "day": "on {0.day} {0:%B %Y}",
    "week": "in the week of {0.day} {0:%B %Y}",
    "month": "in {0:%B %Y}",
    "year": "in {0:%Y}",
}
_PREPOSITIONS = (" on", " of", " from", " since", " until", " till", " by", " for", " before", " after")
_PREPOSITION_CHARS = 40  # how far before a time a preposition may occur


def names_relative_time(text: str) -> bool:
    """True if the text contains a relative time, such as "yesterday"."""
    return bool(_relative(text))


def same_meaning(text: str, stated_at: datetime) -> tuple[datetime, datetime] | None:
    """Return the interval (UTC) during which a text keeps its meaning.

    For "yesterday", this is the day of `stated_at`. Returns None if the meaning never changes.
    """
    named = _relative(text)
    if not named:
        return None
    day = min(stated_at.astimezone(UTC).date(), _LAST_DAY)
    units: list[Unit] = [mention.unit if mention.kind == "calendar" else "day" for mention in named]
    finest = min(units, key=UNITS.index)
    if finest == "week" and len(set(units)) > 1:
        finest = "day"  # a week may span two months
    period = calendar_unit(finest, 0, day)
    return midnight(period.first, UTC), midnight(period.last + timedelta(days=1), UTC)


def _relative(text: str) -> Sequence[Mention]:
    return [mention for mention in mentions(text, _SOME_DAY) if mention.is_relative]


def with_absolute_times(text: str, today: date) -> str:
    """Replace relative times in English: "yesterday" becomes "on 4 March 2024".

    In other languages, add the date in parentheses. Quotations do not change.
    """
    quoted = quotations(text)
    first = len(text) - len(text.lstrip())
    for mention in reversed(mentions(text, today)):
        if mention.time is None or not mention.is_relative or any(start <= mention.start < end for start, end in quoted):
            continue
        if mention.language == "en":
            words = _english(text, mention, mention.time, first)
        else:
            words = f"{text[mention.start : mention.end]} ({_iso(mention.time)})"
        text = text[: mention.start] + words + text[mention.end :]
    return text


def _english(text: str, mention: Mention, named: NamedTime, first: int) -> str:
    """Return the English words for a date, avoiding a repeated preposition."""
    words = _WORDS[named.unit].format(named.first)
    before = text[max(first, mention.start - _PREPOSITION_CHARS) : mention.start].rstrip().lower()
    if before.endswith(_PREPOSITIONS) or text[mention.end : mention.end + 2] in ("'s", "’s"):
        words = words.partition(" ")[2]
    return words if mention.start > first else words[0].upper() + words[1:]


def _iso(named: NamedTime) -> str:
    if named.unit == "week" or (named.unit == "day" and named.last > named.first):
        return f"{named.first}/{named.last}"
    return {"day": f"{named.first}", "month": f"{named.first:%Y-%m}"}.get(named.unit, f"{named.first:%Y}")
