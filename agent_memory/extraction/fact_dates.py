"""Dates of facts: read in the user's zone, and checked against the times of the messages that they come from (pure)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from re import Match

from agent_memory.text.quotations import quotations, without_quotations
from agent_memory.text.retrieval_units import day
from agent_memory.text.time_expressions import Span, named_time

# Days from the message's own, of words that mean one day whatever is said around them. "morgen" and "mañana" are mornings, too.
_DAYS = {
    "today": 0,
    "tonight": 0,
    "yesterday": -1,
    "last night": -1,
    "tomorrow": 1,
    "the day before yesterday": -2,
    "the day after tomorrow": 2,
    "heute": 0,
    "gestern": -1,
    "vorgestern": -2,
    "übermorgen": 2,
    "aujourd'hui": 0,
    "avant-hier": -2,
    "demain": 1,
    "après-demain": 2,
    "ayer": -1,
    "anteayer": -2,
    "hoy": 0,
    "pasado mañana": 2,
    "ieri": -1,
    "domani": 1,
    "ontem": -1,
    "gisteren": -1,
    "昨天": -1,
    "明天": 1,
    "昨日": -1,
    "明日": 1,
}
_ENGLISH = frozenset(word for word in _DAYS if word.startswith(("today", "tonight", "yesterday", "last", "tomorrow", "the ")))


def _any_of(words: list[str]) -> str:
    return "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))


# Scripts that write no blanks have no bounds of words.
_BOUNDED, _ANYWHERE = [word for word in _DAYS if word < "\u3000"], [word for word in _DAYS if word >= "\u3000"]
_NEAR = re.compile(rf"(?<!\w)(?:{_any_of(_BOUNDED)})(?!\w)|{_any_of(_ANYWHERE)}", re.IGNORECASE)
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
# "Next Friday" is not read: some mean this one, some the one after.
_COMING = re.compile(rf"(?<!\w)this coming (?P<weekday>{'|'.join(_WEEKDAYS)})(?!\w)", re.IGNORECASE)
_AHEAD = re.compile(r"(?<!\w)in (?P<count>\d{1,3}|a|one|two|three|four|five|six) (?P<unit>day|week)s?(?!\w)", re.IGNORECASE)
_COUNTS = {"a": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6}
_PREPOSITIONS = (" on", " of", " from", " since", " until", " till", " by", " for", " before", " after")
_PREPOSITION_CHARS = 40  # before a time: so far is looked for a preposition
# A zone makes a day of difference, and some models count the first day.
_SLIP = timedelta(days=2)


def instant(value: str | None, zone: tzinfo) -> datetime | None:
    """An ISO date or time as an instant in UTC, a day as its first moment in `zone`; None where the calendar ends."""
    if value is None:
        return None
    moment = datetime.fromisoformat(value)
    try:
        return (moment.replace(tzinfo=zone) if moment.tzinfo is None else moment).astimezone(UTC)
    except (OverflowError, ValueError):
        return None


def with_absolute_days(text: str, said: datetime, zone: tzinfo) -> str:
    """A fact's text without words whose day is only known with its message: "yesterday" becomes "on 4 March 2024".

    English words are replaced; behind those of other languages the day is added, as 2024-03-04. Quotations stay as they are.
    """
    here = _local(said, zone)
    # Where the text begins; what is put in before it is never blank.
    first = len(text) - len(text.lstrip())

    def absolute(match: Match[str]) -> str:
        word = " ".join(match[0].lower().split())
        meant = here + timedelta(days=_DAYS[word])
        return _on(meant, match, first) if word in _ENGLISH else f"{match[0]} ({meant.isoformat()})"

    text = _outside_quotations(_NEAR, absolute, text)
    text = _outside_quotations(_COMING, lambda match: _on(_coming(match, here), match, first), text)
    return _outside_quotations(_AHEAD, lambda match: _on(_ahead(match, here), match, first), text)


def _outside_quotations(pattern: re.Pattern[str], replace: Callable[[Match[str]], str], text: str) -> str:
    """`pattern.sub` for what stands in no quotation."""
    quoted = quotations(text)
    position = 0

    def changed(match: Match[str]) -> str:
        nonlocal position
        while position < len(quoted) and quoted[position][1] <= match.start():
            position += 1
        inside = position < len(quoted) and quoted[position][0] <= match.start()
        return match[0] if inside else replace(match)

    return pattern.sub(changed, text)


def event_day(answered: datetime | None, texts: Sequence[str], said: datetime, zone: tzinfo, *, now: datetime) -> datetime | None:
    """The day of an event: the model's, or that of the only time that the cited messages (`texts`) name.

    The model's is put right when it is off by a day or two, which a zone makes, or was reckoned from `now` instead of the message's time.
    """
    named = (_meant(without_quotations(text), said, zone) for text in texts)
    spans = {(span.start, span.end): span for span in named if span is not None}
    if len(spans) != 1:
        return answered
    span = next(iter(spans.values()))
    exact = span.end - span.start <= timedelta(hours=26)
    if answered is None:
        return span.start if exact else None
    if span.start <= answered < span.end:
        return answered
    off = any(abs(answered - other) <= _SLIP for other in (span.start, now + (span.start - said)))
    return span.start if off and exact else answered


def _meant(text: str, said: datetime, zone: tzinfo) -> Span | None:
    """The one day or time that a message names; None when it names none, or several."""
    here = _local(said, zone)
    days = {here + timedelta(days=_DAYS[" ".join(m[0].lower().split())]) for m in _NEAR.finditer(text)}
    days |= {_coming(m, here) for m in _COMING.finditer(text)}
    days |= {_ahead(m, here) for m in _AHEAD.finditer(text) if m["unit"].lower() == "day"}
    if not days:
        first = named_time(text, said, zone)
        # What may lie behind or ahead is no day.
        return (
            None
            if first is None or first.coming is not None or named_time(text.replace(first.words, " ", 1), said, zone) is not None
            else first
        )
    rest = _AHEAD.sub(" ", _COMING.sub(" ", _NEAR.sub(" ", text)))
    if len(days) > 1 or named_time(rest, said, zone) is not None:
        return None
    meant = days.pop()
    start, end = (datetime.combine(boundary, time(), zone).astimezone(UTC) for boundary in (meant, meant + timedelta(days=1)))
    return Span(start, end, text)


def _local(said: datetime, zone: tzinfo) -> date:
    return said.astimezone(zone).date()


def _coming(match: Match[str], here: date) -> date:
    """The first such weekday after today."""
    return here + timedelta(days=(_WEEKDAYS.index(match["weekday"].lower()) - here.weekday() - 1) % 7 + 1)


def _ahead(match: Match[str], here: date) -> date:
    count = _COUNTS.get(match["count"].lower()) or int(match["count"])
    return here + timedelta(days=count * (7 if match["unit"].lower() == "week" else 1))


def _on(meant: date, match: Match[str], first: int) -> str:
    """The day in the words of a text that begins at `first`."""
    said, text, start = day(datetime.combine(meant, time(), UTC)), match.string, match.start()
    before = text[max(first, start - _PREPOSITION_CHARS) : start].rstrip().lower()
    bare = before.endswith(_PREPOSITIONS) or text[match.end() : match.end() + 2] == "'s"
    word = said if bare else f"on {said}"
    return word if start > first else word[0].upper() + word[1:]
