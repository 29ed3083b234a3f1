"""Test how event times are read from texts and memory dates."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from agent_memory.extensions.profile.entries import FollowedMemory, entry_of
from agent_memory.extensions.timeline.event_time import Precision, event_time, time_of_text
from agent_memory.extensions.timeline.events import events_of
from agent_memory.extensions.timeline.periods import group_events, period_of
from agent_memory_client.models import MemoryRecord, MemoryTypeEnum
from agent_memory_client.models.features.timeline import TimelineEvent
from tests.support.rig import record

SAID = datetime(2026, 11, 23, 12, tzinfo=UTC)  # a Monday
TEXTS = [
    ("I flew to Rome on 3 October", "2026-10-03", "2026-10-03", "day"),
    ("I went to the beach yesterday", "2026-11-22", "2026-11-22", "day"),
    ("I will fly on Friday", "2026-11-27", "2026-11-27", "day"),
    ("Last week I had the flu", "2026-11-16", "2026-11-22", "week"),
    ("I met Ann in March 2024", "2024-03-01", "2024-03-31", "month"),
    ("In 2019 I moved to Oslo", "2019-01-01", "2019-12-31", "year"),
    ("I was in Rome from 3 March to 5 March 2024", "2024-03-03", "2024-03-05", "day"),
    ("I have worked at Acme since 2020", "2020-01-01", None, "year"),
    ("Gestern war ich in Rom", "2026-11-22", "2026-11-22", "day"),
]


@pytest.mark.parametrize(("text", "start", "end", "precision"), TEXTS)
def test_event_days_and_precision_are_read_from_a_text(text: str, start: str, end: str | None, precision: str) -> None:
    time = time_of_text(text, SAID, UTC)
    assert time is not None
    assert (time.first.isoformat(), time.last and time.last.isoformat(), time.precision) == (start, end, precision)


@pytest.mark.parametrize(
    "text", ["I like green tea", "I run every Monday", "I lived there until 2019", "I have 2000 books", "Anna visits me on Friday"]
)
def test_text_without_a_specific_time_has_no_event_days(text: str) -> None:
    assert time_of_text(text, SAID, UTC) is None


def times(text: str, **more: Any) -> tuple[str, str | None, str, str]:
    """Return the first day, last day, precision and source of a fact's time."""
    time = event_time(record(text, created_at=SAID, **more), SAID, UTC, uses_stated_at=True)
    assert time is not None
    return time.first.isoformat(), time.last and time.last.isoformat(), time.precision, time.dated_by


def test_event_date_takes_precedence_over_the_text() -> None:
    day = datetime(2024, 3, 1, tzinfo=UTC)
    assert times("Ada fell on 3 March 2024", event_date=day) == ("2024-03-01", "2024-03-01", "day", "event")
    assert times("Ada moved in March 2024", event_date=day) == ("2024-03-01", "2024-03-31", "month", "event")
    assert times("Ada moved in 2024", event_date=day) == ("2024-03-01", "2024-03-01", "day", "event")
    assert times("Ada was in Rome", event_date=day, valid_to=day + timedelta(days=3)) == ("2024-03-01", "2024-03-03", "day", "event")
    assert times("Ada is on leave", valid_from=day) == ("2024-03-01", None, "day", "event")
    assert times("Ada quarrelled with Ben") == ("2026-11-23", "2026-11-23", "day", "said")
    moment = event_time(record("Ada fell", event_date=day.replace(hour=18)), SAID, UTC)
    assert moment is not None
    assert moment.at == day.replace(hour=18)


def test_event_days_use_the_users_time_zone() -> None:
    tokyo = ZoneInfo("Asia/Tokyo")
    late = datetime(2026, 11, 22, 20, tzinfo=UTC)
    time = time_of_text("I ran today", late, tokyo)
    assert time is not None
    assert time.first == date(2026, 11, 23)
    fell = event_time(record("Ada fell", event_date=datetime(2024, 3, 1, tzinfo=tokyo)), late, tokyo)
    assert fell is not None
    assert (fell.first, fell.at) == (date(2024, 3, 1), None)


def told(text: str, zone: tzinfo = UTC, **more: Any) -> list[tuple[str, str]]:
    """Return the text and first day of each event in a message."""
    message = record(text, user_id="ada", created_at=SAID, memory_type=MemoryTypeEnum.MESSAGE, **more)
    return [(entry.payload["text"], entry.payload["start"]) for entry in events_of(FollowedMemory("mid", "t", message), zone)]


@pytest.mark.parametrize("zone", ["Pacific/Honolulu", "America/Los_Angeles", "UTC", "Asia/Tokyo", "Pacific/Auckland"])
def test_metadata_date_is_the_same_day_in_every_zone(zone: str) -> None:
    assert told("I swam yesterday", ZoneInfo(zone), metadata={"date": "2024-05-06"}) == [("I swam yesterday", "2024-05-05")]
    stated = record("Ada swims", user_id="ada", created_at=SAID, metadata={"date": "2024-05-06"})
    dated = record("Ada swam", user_id="ada", created_at=SAID, event_date=datetime(2024, 5, 6, tzinfo=UTC))
    days = [entry.days for one in (stated, dated) if (entry := entry_of(FollowedMemory("mid", "t", one), ZoneInfo(zone))) is not None]
    assert days == [[(date(2024, 5, 6) - date(1970, 1, 1)).days]] * 2


def test_each_dated_sentence_of_a_user_message_is_an_event() -> None:
    text = "I love it here! Yesterday I swam in the sea. Will you come on Friday? On 3 March 2024 I broke my arm."
    assert told(text) == [("Yesterday I swam in the sea.", "2026-11-22"), ("On 3 March 2024 I broke my arm.", "2024-03-03")]
    assert told("I swam yesterday", metadata={"date": "2024-05-06"}) == [("I swam yesterday", "2024-05-05")]
    assert not told("I swam yesterday", metadata={"role": "assistant"})
    assert not told("I love the sea")
    assert not told("I swam yesterday", agent_id="coach")


@pytest.mark.parametrize("text", ["Am 28. November 2023.", "On 28 November 2023", "2023年11月28日。"])
def test_sentence_that_is_only_a_time_is_neither_an_event_nor_a_profile_entry(text: str) -> None:
    assert not told(text)
    message = record(text, user_id="ada", created_at=SAID, memory_type=MemoryTypeEnum.MESSAGE)
    assert entry_of(FollowedMemory("mid", "t", message)) is None


def fact(memory_type: MemoryTypeEnum, text: str, **more: Any) -> MemoryRecord:
    return record(text, user_id="ada", created_at=SAID, memory_type=memory_type, **more)


def test_extracted_memory_type_decides_whether_it_is_an_event() -> None:
    dated = fact(MemoryTypeEnum.SEMANTIC, "Ada moved in March 2024")
    assert not events_of(FollowedMemory("mid", "t", dated), statements=False)
    assert events_of(FollowedMemory("mid", "t", dated))
    for event in (fact(MemoryTypeEnum.EPISODIC, "Ada moved"), fact(MemoryTypeEnum.SEMANTIC, "Ada moved", event_date=SAID)):
        assert len(events_of(FollowedMemory("mid", "t", event), statements=False)) == 1
    assert not events_of(FollowedMemory("mid", "t", fact(MemoryTypeEnum.EPISODIC, "Ada moved", quarantine="rude")))


def test_periods_follow_the_calendar() -> None:
    assert period_of(date(2024, 12, 31), "week")[2] == "2025-W01"
    assert period_of(date(2024, 2, 10), "month")[:2] == (date(2024, 2, 1), date(2024, 2, 29))
    starts: list[tuple[str, date, Precision]] = [
        ("month", date(2024, 3, 1), "month"),
        ("monday", date(2024, 3, 4), "day"),
        ("sunday", date(2024, 3, 10), "day"),
    ]
    events = [
        TimelineEvent(id=name, text=name, start=start, end=start, precision=precision, last_said=SAID) for name, start, precision in starts
    ]
    weeks = [(period.name, [event.id for event in period.events]) for period in group_events(events, "week", {})]
    assert weeks == [("2024-03", ["month"]), ("2024-W10", ["monday", "sunday"])]
    assert [period.name for period in group_events(events, "day", {})] == ["2024-03", "2024-03-04", "2024-03-10"]
    assert [period.name for period in group_events(events, "month", {})] == ["2024-03"]
