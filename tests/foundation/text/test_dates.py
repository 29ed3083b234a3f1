"""Test that dates are extracted from texts only if they are certain."""

from __future__ import annotations

import json
import time
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import pytest

from agent_memory.foundation.core.clock import zone_of
from agent_memory.foundation.text.dates.named_times import names_time, only_time
from agent_memory.foundation.text.dates.question_time import beside, question_time
from agent_memory.foundation.text.dates.relative import same_meaning, with_absolute_times

# A Wednesday.
TODAY = date(2026, 11, 25)
NOW = datetime(2026, 11, 25, 12, tzinfo=UTC)
UNSEEN = Path(__file__).parents[2] / "data/unseen"
READ = ("en", "zh", "de", "es", "fr")


def days(text: str) -> str:
    """Return the only time in a text, in these tests' notation."""
    named = only_time(text, TODAY)
    if named is None:
        return ""
    relation = "" if named.relation == "on" else f"{named.relation} "
    return relation + (f"{named.first}" if named.first == named.last else f"{named.first}/{named.last}")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I signed the lease on 2024-02-29.", "2024-02-29"),
        ("We were in Rome from 3 March to 5 March 2024.", "2024-03-03/2024-03-05"),
        ("The closing is on Saturday, January 9, 2027.", "2027-01-09"),
        ("It was a Saturday, 9 January.", "2027-01-09"),
        ("I was there between May and June 2022.", ""),
        ("The course runs from 17 April 2023 to 30 June.", "2023-04-17/2023-06-30"),
        ("I flew to Rome on 3 June.", "2026-06-03"),
        ("I flew to Rome on 3 March.", ""),
        ("I will fly to Rome on 3 March.", "2027-03-03"),
        ("The rent is due on 1 December.", "2026-12-01"),
        ("The fair is on 1 June.", ""),
        ("My birthday is on 1 December.", ""),
        ("I saw her on Friday.", "2026-11-20"),
        ("I will see her on Friday.", "2026-11-27"),
        ("I booked a table for Friday.", ""),
        ("She said the exam is on Friday.", ""),
        ("I saw the eye doctor last Friday.", "2026-11-20"),
        ("I saw the eye doctor last Tuesday.", ""),
        ("Friday the 20th was a nice day.", "2026-11-20"),
        ("The exam is on Friday the 27th.", "2026-11-27"),
        ("The exam is on Friday the 28th.", ""),
        ("We met in May 2023.", "2023-05-01/2023-05-31"),
        ("I spent the last two weeks of August 2023 in Crete.", ""),
        ("I have worked there since 2020.", "since 2020-01-01/2020-12-31"),
        ("The shop is open until 5 March 2027.", "until 2027-03-05"),
        ("Let's meet on 3 or 4 March 2027.", ""),
        ("Interviews are on May 10, 12, and 15, 2027.", ""),
        ("It is 3/4/2027, or 4/13/2027.", ""),
        ("It is 13/4/2027.", "2027-04-13"),
        ("It is 3/4/2027.", ""),
        ("I read it in two days.", ""),
        ("The movers come in two days.", "2026-11-27"),
        ("I run every Monday.", ""),
        ("You may march 3 miles in May's shoes, room 2023.", ""),
        ("Am 31. März 2027 ziehe ich um.", "2027-03-31"),
        ("Am 12.05.2024 habe ich geheiratet.", "2024-05-12"),
        ("Guten Morgen! Gestern war ich beim Arzt.", "2026-11-24"),
        ("Jeden Morgen trinke ich Kaffee.", ""),
        ("Ich bin hier geboren.", ""),
        ("Hier, j'ai acheté un vélo.", "2026-11-24"),
        ("Il y a trois ans que j'habite ici.", ""),
        ("Le 1er mai 2025 j'ai quitté mon travail.", "2025-05-01"),
        ("Por la mañana tomo café.", ""),
        ("El 3 de abril de 2024 nació mi hija.", "2024-04-03"),
        ("Mañana por la mañana viene el fontanero.", "2026-11-26"),
        ("2024年12月25号我搬到了上海。", "2024-12-25"),
        ("我十二月二十三日要参加婚礼。", "2026-12-23"),
        ("上周五我见了老同学。", "2026-11-20"),
        ("下周五要交报告。", "2026-12-04"),
        ("这个月15号交房", "2026-11-15"),
        ("我每周五去游泳。", ""),
        ("昨日は泳いだ。", ""),
        ("Ieri sono andato dal medico, e oggi sto bene.", ""),
    ],
)
def test_only_certain_dates_are_read_from_a_text(text: str, expected: str) -> None:
    assert days(text) == expected


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What did I do last weekend?", "2026-11-21 2026-11-23"),
        ("What happened in March?", "2026-03-01 2026-04-01"),
        ("Last week, what did I cook?", "2026-11-16 2026-11-23"),
        ("I had a great day. What did I eat yesterday?", "2026-11-24 2026-11-25"),
        ("yesterday", "2026-11-24 2026-11-25"),
        ("Was habe ich letzte Woche gemacht?", "2026-11-16 2026-11-23"),
        ("我上周做了什么？", "2026-11-16 2026-11-23"),
        ("Who came to dinner between 8 May and 1 June 2023?", "2023-05-08 2023-06-02"),
        ("What did I do on Friday or Saturday?", None),
        ("What did I watch shortly before 7 Jan 2024?", None),
        ("Who did I meet on 8 May 2022 in Rome?", "2022-05-08 2022-05-09"),
        ("I was in Rome last week.", None),
        ("When did I visit Rome last year?", None),
        ("What engine does my 2019 Golf have?", None),
        ("What did you think of last week's meeting?", "2026-11-16 2026-11-23"),
        ("上周的会议说了什么？", "2026-11-16 2026-11-23"),
        ("Anything on Friday?", "2026-11-27 2026-11-28"),
        ("What did I do on Friday?", "2026-11-20 2026-11-21"),
        ("What did I book for Friday?", None),
        ("I fly on Friday, what should I pack?", None),
        ("明天要去面试，穿什么好？", None),
        ("", None),
    ],
)
def test_time_is_read_only_from_a_question_that_asks_about_it(question: str, expected: str | None) -> None:
    span = question_time(question, NOW)
    assert (span and f"{span.start.date()} {span.end.date()}") == expected


def test_question_time_uses_the_users_time_zone() -> None:
    span = question_time("What happened yesterday?", datetime(2023, 6, 15, 23, 30, tzinfo=UTC), zone_of("Asia/Tokyo"))
    assert span is not None
    assert (span.start, span.end) == (datetime(2023, 6, 14, 15, tzinfo=UTC), datetime(2023, 6, 15, 15, tzinfo=UTC))
    assert beside("What happened yesterday?", span) == "What happened ?"


@pytest.mark.parametrize(
    ("question", "before", "within", "after"),
    [
        ("What did I eat before May 2022?", "", "1970-01-01 2022-04-30", "2022-05-01"),
        ("What did I eat until May 2022?", "", "1970-01-01 2022-05-31", "2022-06-01"),
        ("What did I eat after 8 May 2022?", "2022-05-08", "2022-05-09 2030-01-01", ""),
        ("What did I eat since May 2022?", "2022-04-30", "2022-05-01 2030-01-01", ""),
    ],
)
def test_before_and_after_are_read_as_half_open_intervals(question: str, before: str, within: str, after: str) -> None:
    span = question_time(question, NOW, zone_of("Asia/Tokyo"))
    assert span is not None
    noon = {day: datetime.fromisoformat(f"{day}T12:00+09:00") for day in f"{before} {within} {after}".split()}
    assert {day for day, moment in noon.items() if span.start <= moment < span.end} == set(within.split())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I am vegan", None),
        ("I was in Bergen yesterday", ("2026-11-25", "2026-11-26")),
        ("We meet this week", ("2026-11-23", "2026-11-30")),
        ("Rent goes up next year", ("2026-01-01", "2027-01-01")),
        ("This week I plan next month", ("2026-11-25", "2026-11-26")),
        ("See you on Friday", ("2026-11-25", "2026-11-26")),
        ("I run every day this month", ("2026-11-01", "2026-12-01")),
    ],
)
def test_text_with_a_relative_time_keeps_its_meaning_within_that_period(text: str, expected: tuple[str, str] | None) -> None:
    within = same_meaning(text, NOW)
    assert (within and tuple(f"{each:%Y-%m-%d}" for each in within)) == expected


def test_relative_times_are_replaced_by_dates() -> None:
    text = "Yesterday we ate at Tom's, and we will fly next month. I saw him by tomorrow's ferry."
    told = "On 24 November 2026 we ate at Tom's, and we will fly in December 2026. I saw him by 26 November 2026's ferry."
    assert with_absolute_times(text, TODAY) == told
    assert with_absolute_times("Nächste Woche koche ich.", TODAY) == "Nächste Woche (2026-11-30/2026-12-06) koche ich."


def test_unknown_time_zone_is_refused() -> None:
    for name in ("Mars/Olympus", "../../etc/passwd"):
        with pytest.raises(ValueError, match="IANA"):
            zone_of(name)


def test_text_without_a_time_is_checked_quickly() -> None:
    texts = [f"What is the name of my dog called {word}?" for word in ("ab", "bc", "cd", "de")] * 100
    names_time("today")
    began = time.thread_time()
    assert not any(map(names_time, texts))
    # 0.03 ms each, on a machine that is twenty times slower.
    assert time.thread_time() - began < len(texts) * 0.0006 + 0.1


class Score(NamedTuple):
    """The number of dates that were found, correct, and expected."""

    given: int
    right: int
    labelled: int

    @property
    def precision(self) -> float:
        """Return the share of found dates that are correct."""
        return self.right / self.given


def _lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (UNSEEN / name).read_text("utf-8").splitlines()]


def _label(value: str) -> tuple[str, str]:
    """Return the first and last day of a labeled day, month, year or interval."""
    first, _, last = value.partition("/")
    starts = {4: f"{first}-01-01", 7: f"{first}-01"}.get(len(first), first)
    ends = {4: f"{first}-12-31", 7: f"{first}-31"}.get(len(first), first)
    return starts, last or ends


def _agrees(given: tuple[date, date], label: tuple[str, str], *, wider: bool) -> bool:
    """True if the days equal the label. `wider` allows a week on either side ("in two weeks")."""
    first, last = given[0].isoformat(), given[1].isoformat()
    ends = {last, last[:8] + "31"} if last[8:] in ("28", "29", "30") else {last}
    return (first == label[0] and label[1] in ends) or (wider and first <= label[0] and label[1] <= last)


def _score_statements(languages: tuple[str, ...], *, other: bool = False) -> Score:
    given = right = labelled = 0
    for line in _lines("dates.jsonl"):
        if (line["lang"] in languages) is other:
            continue
        today = datetime.fromisoformat(line["now"]).astimezone(ZoneInfo(line["zone"])).date()
        labels = [_label(value) for value in line["dates"]]
        labelled += bool(labels)
        named = only_time(line["text"], today)
        if named is not None and named.relation in ("on", "since"):
            given += 1
            right += any(_agrees((named.first, named.last), label, wider=named.unit == "week") for label in labels)
    return Score(given, right, labelled)


def test_dates_in_unseen_statements_are_precise(record_property: pytest.RecordProperty) -> None:
    read, others = _score_statements(READ), _score_statements(READ, other=True)
    record_property("dates", f"{read}; other languages: {others}")
    assert read.precision >= 0.98
    assert read.right >= 0.65 * read.labelled
    # In other languages, only numeric dates are read.
    assert others.given == others.right


def test_times_in_unseen_questions_are_precise(record_property: pytest.RecordProperty) -> None:
    given = right = asking = 0
    for line in _lines("dates_questions.jsonl"):
        if line["lang"] not in READ:
            continue
        zone = ZoneInfo(line["zone"])
        asking += line["asks_time"]
        span = question_time(line["text"], datetime.fromisoformat(line["now"]), zone)
        if span is not None:
            ends = date.fromordinal(span.end.astimezone(zone).date().toordinal() - 1)
            given += 1
            right += line["asks_time"] and _agrees((span.start.astimezone(zone).date(), ends), _label(line["range"]), wider=False)
    record_property("questions", str(Score(given, right, asking)))
    assert right >= 0.98 * given
    assert right >= 0.6 * asking
