"""Times that lie ahead or behind, in several languages."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest

from agent_memory.text.languages.time_words import direction_of
from agent_memory.text.time_expressions import named_time

# A Wednesday.
NOW = datetime(2026, 3, 11, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("question", "start", "end"),
    [
        ("Who will visit me on Friday?", "2026-03-13", "2026-03-14"),
        ("Who visited me on Friday?", "2026-03-06", "2026-03-07"),
        ("Who visits me on Friday?", "2026-03-13", "2026-03-14"),
        ("When does my sister land on Friday?", "2026-03-13", "2026-03-14"),
        ("Who knows what I bought on Friday?", "2026-03-06", "2026-03-07"),
        ("next Monday", "2026-03-16", "2026-03-17"),
        ("the day after tomorrow", "2026-03-13", "2026-03-14"),
        ("What am I going to do in three days?", "2026-03-14", "2026-03-15"),
        ("in two weeks", "2026-03-22", "2026-03-29"),
        ("Where will I fly on the 27th?", "2026-03-27", "2026-03-28"),
        ("What did I buy on the 27th?", "2026-02-27", "2026-02-28"),
        ("What will happen in May?", "2026-05-01", "2026-06-01"),
        ("next month", "2026-04-01", "2026-05-01"),
        ("Who am I having dinner with on Friday?", "2026-03-13", "2026-03-14"),
        ("Who did I have dinner with on Friday?", "2026-03-06", "2026-03-07"),
        ("Wer besucht mich am Freitag?", "2026-03-13", "2026-03-14"),
        ("Wer hat mich am Freitag besucht?", "2026-03-06", "2026-03-07"),
        ("Mit wem habe ich am Freitag gegessen?", "2026-03-06", "2026-03-07"),
        ("¿Con quién ceno el viernes?", "2026-03-13", "2026-03-14"),
        ("¿Con quién cené el viernes?", "2026-03-06", "2026-03-07"),
        ("¿A dónde viajaré el viernes?", "2026-03-13", "2026-03-14"),
        ("Avec qui je déjeune vendredi ?", "2026-03-13", "2026-03-14"),
        ("Qui m'a appelé vendredi ?", "2026-03-06", "2026-03-07"),
        ("Wer kommt nächsten Freitag?", "2026-03-13", "2026-03-14"),
        ("Was war letzte Woche?", "2026-03-02", "2026-03-09"),
        ("in drei Tagen", "2026-03-14", "2026-03-15"),
        ("Was steht im Mai an? Wird es warm?", "2026-05-01", "2026-06-01"),
        ("¿Quién viene el viernes?", "2026-03-13", "2026-03-14"),
        ("¿Qué hice la semana pasada?", "2026-03-02", "2026-03-09"),
        ("dentro de dos días", "2026-03-13", "2026-03-14"),
        ("el mes que viene", "2026-04-01", "2026-05-01"),
        ("Qui vient vendredi ?", "2026-03-13", "2026-03-14"),
        ("Qu'est-ce que j'ai fait lundi dernier ?", "2026-03-09", "2026-03-10"),
        ("la semaine prochaine", "2026-03-16", "2026-03-23"),
        ("il y a trois jours", "2026-03-08", "2026-03-09"),
        ("明天谁来？", "2026-03-12", "2026-03-13"),
        ("下周五我要做什么？", "2026-03-20", "2026-03-21"),
        ("上周五我做了什么？", "2026-03-06", "2026-03-07"),
        ("三天后", "2026-03-14", "2026-03-15"),
        ("下个月", "2026-04-01", "2026-05-01"),
        ("去年", "2025-01-01", "2026-01-01"),
    ],
)
def test_what_decides_which_day_is_meant(question: str, start: str, end: str) -> None:
    span = named_time(question, NOW)
    assert span is not None
    assert [(begin.date().isoformat(), stop.date().isoformat()) for begin, stop in span.intervals] == [(start, end)]


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("I was ill. Anna visits me on Friday.", "2026-03-13"),
        ("I was ill, so Anna visits me on Friday.", "2026-03-13"),
        ("Anna was here, and on Friday she comes again.", "2026-03-13"),
        ("I told you about my sister. Who visits me on Friday?", "2026-03-13"),
        ("I met Tom and in June we will fly to Rome.", "2026-06-01"),
        ("I will fly to Rome. On Friday I met Tom.", "2026-03-06"),
        ("I will fly to Rome, but on Friday I met Tom.", "2026-03-06"),
        ("I met Anna and Tom on Friday.", "2026-03-06"),
        ("On Friday, with my sister and her dog, I went to Rome.", "2026-03-06"),
        ("What did we buy? On Friday?", "2026-03-06"),
        ("Dr. Osei visited me on Friday.", "2026-03-06"),
        ("Ich war krank. Am Freitag kommt Anna.", "2026-03-13"),
        ("Ich werde umziehen. Am Freitag war Anna da.", "2026-03-06"),
        ("Fui al médico. El viernes viene mi hermana.", "2026-03-13"),
        ("J'étais malade. Vendredi, ma sœur vient.", "2026-03-13"),
        ("我病了。我周五要去医院。", "2026-03-13"),
    ],
)
def test_the_clause_that_names_the_time_decides(text: str, start: str) -> None:
    span = named_time(text, NOW)
    assert span is not None
    assert [begin.date().isoformat() for begin, _ in span.intervals] == [start]


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("They moved the exam to Friday.", "2026-03-13"),
        ("The opera was postponed until Friday.", "2026-03-13"),
        ("I booked a table for Friday.", "2026-03-13"),
        ("We booked Madeira for July, five nights.", "2026-07-01"),
        ("The trip got rescheduled to the 27th.", "2026-03-27"),
        ("Parents' evening was moved to Friday the 20th.", "2026-03-20"),
        ("Friday the 6th was a nice day", "2026-03-06"),
        ("Der Termin wurde auf Freitag verschoben", "2026-03-13"),
        ("Ich habe für Freitag einen Tisch reserviert", "2026-03-13"),
        ("J'ai réservé une table pour vendredi", "2026-03-13"),
        ("会议改到周五", "2026-03-13"),
        ("The tour has been pushed back to September.", "2026-09-01"),
        ("I moved to Oslo on Friday.", "2026-03-06"),
        ("We ran for the 3rd time on Friday and I slept", "2026-03-06"),
    ],
)
def test_what_was_put_on_a_day_lies_ahead(text: str, start: str) -> None:
    span = named_time(text, NOW)
    assert span is not None
    assert span.start.date().isoformat() == start


@pytest.mark.parametrize(
    "text",
    [
        "I was invited to a wedding on Friday",
        "We bought tickets for a concert on Friday",
        "I agreed to meet her on Friday",
        "我约了周五看牙医",
    ],
)
def test_what_was_arranged_may_lie_ahead_or_behind(text: str) -> None:
    span = named_time(text, NOW)
    assert span is not None
    assert [begin.date().isoformat() for begin, _ in span.intervals] == ["2026-03-06", "2026-03-13"]


def test_what_else_a_text_tells_decides_nothing() -> None:
    span = named_time("I was ill. My sister is the guest on Friday.", NOW)
    assert span is not None
    assert [begin.date().isoformat() for begin, _ in span.intervals] == ["2026-03-06", "2026-03-13"]


@pytest.mark.parametrize("question", ["Who is my guest on Friday?", "Friday", "am Freitag", "el viernes", "vendredi", "周五"])
def test_both_days_are_meant_when_nothing_decides(question: str) -> None:
    span = named_time(question, NOW)
    assert span is not None
    assert [(begin.date().isoformat()) for begin, _ in span.intervals] == ["2026-03-06", "2026-03-13"]


@pytest.mark.parametrize(
    ("text", "way"),
    [
        ("I will see her", "future"),
        ("I saw her", "past"),
        ("my sister", "either"),
        ("wann kommt sie", "future"),
        ("下周", "future"),
        ("viene", "future"),
    ],
)
def test_direction(text: str, way: str) -> None:
    assert direction_of(text) == way


def test_a_query_without_a_time_costs_little() -> None:
    queries = [f"What is the name of my dog number {word}?" for word in ("a", "b", "c", "d", "e", "f", "g", "h")] * 50
    began = time.thread_time()
    for query in queries:
        assert named_time(query, NOW) is None
    # 0.2 ms each, and as much again for a slower machine, five times.
    assert time.thread_time() - began < len(queries) * 0.002
