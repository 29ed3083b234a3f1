"""The time that a question names."""

from __future__ import annotations

import random
from datetime import UTC, datetime

import pytest

from agent_memory.text import time_expressions
from agent_memory.text.time_expressions import ago, beside, named_time, same_meaning, zone_of

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
        ("in early May", "2023-05-01", "2023-06-01"),
        ("the course in mid-August 2022", "2022-08-01", "2022-09-01"),
        ("the report of 2022-05", "2022-05-01", "2022-06-01"),
        ("in May last year", "2022-05-01", "2022-06-01"),
        ("last year in May", "2022-05-01", "2022-06-01"),
        ("half a year ago", "2022-11-01", "2023-02-01"),
        ("in the last two weeks", "2023-06-01", "2023-06-16"),
        ("over the last few days", "2023-06-12", "2023-06-16"),
        ("last weekend", "2023-06-10", "2023-06-12"),
        ("over the weekend", "2023-06-10", "2023-06-12"),
        ("this weekend", "2023-06-17", "2023-06-19"),
        ("tomorrow", "2023-06-16", "2023-06-17"),
        ("next week", "2023-06-19", "2023-06-26"),
        ("this morning", "2023-06-15", "2023-06-16"),
        ("between May and June 2022", "2022-05-01", "2022-07-01"),
        ("from 11 May to 15 May 2022 in Rome", "2022-05-11", "2022-05-16"),
        ("between Ana and Ben in May 2022", "2022-05-01", "2022-06-01"),
        ("from Berlin to Paris in May", "2023-05-01", "2023-06-01"),
        ("the week before 3 August 2022", "2022-07-27", "2022-08-04"),
        ("two weeks before 11 August 2022", "2022-07-28", "2022-08-12"),
        ("last weekend before 10 April 2022", "2022-04-03", "2022-04-11"),
        ("the day after 8 May 2022", "2022-05-08", "2022-05-10"),
    ],
)
def test_a_named_time_is_an_interval(question: str, start: str, end: str) -> None:
    span = named_time(question, NOW)
    assert span is not None
    assert (span.start.date().isoformat(), span.end.date().isoformat()) == (start, end)


@pytest.mark.parametrize(
    ("question", "before", "within", "after"),
    [
        ("before May 2022", "", "1970-01-01 2022-04-30", "2022-05-01"),
        ("until May 2022", "", "1970-01-01 2022-05-31", "2022-06-01"),
        ("after 8 May 2022", "2022-05-08", "2022-05-09 2030-01-01", ""),
        ("since May 2022", "2022-04-30", "2022-05-01 2030-01-01", ""),
        ("since last year", "2021-12-31", "2022-01-01 2030-01-01", ""),
    ],
)
def test_an_open_interval_has_one_end(question: str, before: str, within: str, after: str) -> None:
    span = named_time(question, NOW, zone_of("Asia/Tokyo"))
    assert span is not None
    noon = {day: datetime.fromisoformat(f"{day}T12:00+09:00") for day in f"{before} {within} {after}".split()}
    assert {day for day, moment in noon.items() if span.start <= moment < span.end} == set(within.split())


def test_what_is_said_beside_the_time() -> None:
    question = "Who did I meet on 8 May 2022 in Rome?"
    span = named_time(question, NOW)
    assert span is not None
    assert beside(question, span) == "Who did I meet in Rome?"


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


_HEAD = "last this in the past next week month year weekend ago three two a couple of few may sept sep 2023 5th 8 on before after since"
_TAIL = "until between and from Monday spring fall night morning yesterday day Tomorrow tonight half early mid-May days weeks years over at"
_REST = "during to, 2023-05 2023-05-03 January, evening I went bike what she"


def test_what_no_hint_is_in_names_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    class Every:
        """Lets every text through to the patterns."""

        def isdisjoint(self, _: object) -> bool:
            return False

    pick, words = random.Random(5), f"{_HEAD} {_TAIL} {_REST}".split()
    texts = [" ".join(pick.choices(words, k=pick.randint(1, 6))) for _ in range(3000)]
    moment = datetime(2026, 3, 4, tzinfo=UTC)
    found = [named_time(text, moment) for text in texts]
    assert 500 < sum(span is not None for span in found) < 2500
    monkeypatch.setattr(time_expressions, "_HINTS", Every())
    assert found == [named_time(text, moment) for text in texts]


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("I am vegan", None),
        ("I was in Bergen yesterday", ("2025-05-14", "2025-05-15")),
        ("We meet this week", ("2025-05-12", "2025-05-19")),
        ("I run every day this month", ("2025-05-01", "2025-06-01")),
        ("Rent goes up next year", ("2025-01-01", "2026-01-01")),
        ("This month is worse than last year", ("2025-05-01", "2025-06-01")),
        ("This week I plan next month", ("2025-05-14", "2025-05-15")),
        ("This month I slept in yesterday", ("2025-05-14", "2025-05-15")),
        ("Busy this weekend", ("2025-05-14", "2025-05-15")),
    ],
)
def test_how_long_words_mean_the_same_time(text: str, days: tuple[str, str] | None) -> None:
    within = same_meaning(text, datetime(2025, 5, 14, 9, tzinfo=UTC))
    assert (within and tuple(f"{each:%Y-%m-%d}" for each in within)) == days
