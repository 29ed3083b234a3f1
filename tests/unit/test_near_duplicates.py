"""What counts as a repeat of another memory, and what only looks like one."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from agent_memory.services.near_duplicates import Shown
from agent_memory_client.models import MemoryRecord

MAY = datetime(2026, 5, 8, 12, tzinfo=UTC)
JUNE = datetime(2026, 6, 8, 12, tzinfo=UTC)


def fact(text: str, **more: Any) -> MemoryRecord:
    return MemoryRecord.model_validate({"id": text, "text": text, "memory_type": "semantic", "created_at": MAY} | more)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Marta keeps three cats", "marta keeps  three cats."),
        ("Marta keeps three cats", "Oh, Marta really keeps three cats!"),
        ("Das Café in Zürich", "das cafe in zurich"),
        ("The cat sleeps on the sofa", "Cat sleeps on a sofa"),
        ("...", "..."),
    ],
)
def test_repeats(first: str, second: str) -> None:
    shown = Shown()
    assert shown.add(fact(first, id="a")) is None
    assert shown.add(fact(second, id="b")) == "a"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("I used to live in Berlin", "I live in Berlin"),
        ("I will live in Berlin", "I live in Berlin"),
        ("Flew from Berlin to Paris", "Flew to Berlin from Paris"),
        ("Marta keeps 3 cats", "Marta keeps 4 cats"),
        ("It weighs 3.5 kg", "It weighs 35 kg"),
        ("Marta likes tea", "Marta doesn't like tea"),
        ("Marta moved to Porto?", "Marta moved to Porto."),
        ("We use C++", "We use C"),
        ("The meeting is on Tuesday", "The meeting is on Wednesday"),
        ("👍", "👎"),
    ],
)
def test_what_says_something_else_is_no_repeat(first: str, second: str) -> None:
    shown = Shown()
    assert shown.add(fact(first, id="a")) is None
    assert shown.add(fact(second, id="b")) is None


@pytest.mark.parametrize(
    ("first", "second", "repeats"),
    [
        ({}, {"created_at": JUNE}, True),
        ({}, {"user_id": "another"}, False),
        ({}, {"namespace": "another"}, False),
        ({"event_date": MAY}, {"event_date": JUNE}, False),
        ({"memory_type": "episodic"}, {"memory_type": "episodic", "created_at": JUNE}, False),
        ({"memory_type": "message"}, {"memory_type": "message", "session_id": "s"}, True),
        ({"memory_type": "message"}, {}, True),
        ({"memory_type": "message"}, {"created_at": JUNE}, False),
    ],
    ids=str,
)
def test_whose_and_when_decide(first: dict[str, Any], second: dict[str, Any], repeats: bool) -> None:
    shown = Shown()
    shown.add(fact("Went for a run", id="a", **first))
    assert shown.add(fact("went for a run!", id="b", **second)) == ("a" if repeats else None)
