"""The time that a question names."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from agent_memory.timewords import ago, named_time, zone_of

# A Thursday, half an hour before midnight in UTC.
NOW = datetime(2023, 6, 15, 23, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("question", "start", "end"),
    [
        ("What did I do in May 2023?", "2023-05-01", "2023-06-01"),
        ("What did I do in May 2021?", "2021-05-01", "2021-06-01"),
        ("the meeting on 8 May 2022", "2022-05-08", "2022-05-09"),
        ("May 8th, 2022 was fun", "2022-05-08", "2022-05-09"),
        ("the note of 2022-12-31", "2022-12-31", "2023-01-01"),
        ("on 8 May", "2023-05-08", "2023-05-09"),
        ("on December 24", "2022-12-24", "2022-12-25"),
        ("in May", "2023-05-01", "2023-06-01"),
        ("last March", "2023-03-01", "2023-04-01"),
        ("last June", "2022-06-01", "2022-07-01"),
        ("in 2022", "2022-01-01", "2023-01-01"),
        ("yesterday", "2023-06-14", "2023-06-15"),
        ("the day before yesterday", "2023-06-13", "2023-06-14"),
        ("last week", "2023-06-05", "2023-06-12"),
        ("this week", "2023-06-12", "2023-06-19"),
        ("last month", "2023-05-01", "2023-06-01"),
        ("last year", "2022-01-01", "2023-01-01"),
        ("three days ago", "2023-06-12", "2023-06-13"),
        ("two weeks ago", "2023-05-29", "2023-06-05"),
        ("a few months ago", "2023-03-01", "2023-04-01"),
        ("last Monday", "2023-06-12", "2023-06-13"),
        ("on Friday", "2023-06-09", "2023-06-10"),
        ("summer of 2021", "2021-06-01", "2021-09-01"),
        ("last summer", "2022-06-01", "2022-09-01"),
        ("last winter", "2022-12-01", "2023-03-01"),
    ],
)
def test_a_named_time_is_an_interval(question: str, start: str, end: str) -> None:
    span = named_time(question, NOW)
    assert span is not None
    assert (span.start.date().isoformat(), span.end.date().isoformat()) == (start, end)


@pytest.mark.parametrize(
    "question",
    ["When did she paint?", "May I ask you something?", "it may rain", "31 June", "room 2023", "Can you march?", "the 2 of us", ""],
)
def test_no_time_is_none(question: str) -> None:
    assert named_time(question, NOW) is None


@pytest.mark.parametrize(
    ("zone", "start"),
    [
        ("UTC", datetime(2023, 6, 14, tzinfo=UTC)),
        # In Tokyo it is the 16th already.
        ("Asia/Tokyo", datetime(2023, 6, 14, 15, tzinfo=UTC)),
        ("America/Los_Angeles", datetime(2023, 6, 14, 7, tzinfo=UTC)),
    ],
)
def test_days_are_those_of_the_users_zone(zone: str, start: datetime) -> None:
    span = named_time("What happened yesterday?", NOW, zone_of(zone))
    assert span is not None
    assert span.start == start
    assert (span.end - span.start).total_seconds() == 86400


def test_an_unknown_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="IANA"):
        zone_of("Mars/Olympus")
    with pytest.raises(ValueError, match="IANA"):
        zone_of("../../etc/passwd")


@pytest.mark.parametrize(
    ("moment", "said"),
    [
        (datetime(2023, 6, 15, 1, tzinfo=UTC), "today"),
        (datetime(2023, 6, 14, tzinfo=UTC), "1 day ago"),
        (datetime(2023, 5, 25, tzinfo=UTC), "3 weeks ago"),
        (datetime(2022, 12, 25, tzinfo=UTC), "5 months ago"),
        (datetime(2020, 6, 1, tzinfo=UTC), "3 years ago"),
        (datetime(2023, 6, 18, tzinfo=UTC), "in 3 days"),
    ],
)
def test_ago(moment: datetime, said: str) -> None:
    assert ago(moment, NOW) == said
