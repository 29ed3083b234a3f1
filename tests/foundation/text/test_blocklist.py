"""Phrases that must not be recorded are found in any inflection, without patterns."""

from __future__ import annotations

import time

import pytest

from agent_memory.foundation.text.blocked_phrases import Blocklist

PHRASES = Blocklist(["salary", "off the record", "薪水", "x-ray", "who is it", "🤫", ".*"])


@pytest.mark.parametrize(
    "text",
    [
        "My salaries are high",
        "this is OFF the record!",
        "Off record: I quit",
        "他的薪水很高",
        "an X-ray",
        "who is it",
        "hush 🤫",
        "say .* now",
    ],
)
def test_a_phrase_is_found(text: str) -> None:
    assert PHRASES.holds(text)
    assert PHRASES.holds("figs", text)


@pytest.mark.parametrize("text", ["celery", "xerox the ray", "the record is off", "薪金水", "who was it", "", "anything at all"])
def test_other_words_are_not(text: str) -> None:
    assert not PHRASES.holds(text)


def test_no_phrases_find_nothing_and_many_cost_little() -> None:
    assert not Blocklist([]).holds("salary")
    assert not Blocklist(["", "  "])
    many = Blocklist(f"secret number {number} (a+)+$" for number in range(200))
    began = time.process_time()
    assert not many.holds("a" * 60_000, "secret number " * 4000)
    assert time.process_time() - began < 2
