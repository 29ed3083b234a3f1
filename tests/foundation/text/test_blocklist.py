"""Test that blocked phrases are found in any inflected form, without regular expressions."""

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
def test_blocked_phrase_is_found_in_any_inflection(text: str) -> None:
    assert PHRASES.holds(text)
    assert PHRASES.holds("figs", text)


@pytest.mark.parametrize("text", ["celery", "xerox the ray", "the record is off", "薪金水", "who was it", "", "anything at all"])
def test_text_without_a_blocked_phrase_is_not_matched(text: str) -> None:
    assert not PHRASES.holds(text)


def test_empty_blocklist_matches_nothing_and_a_long_one_is_fast() -> None:
    assert not Blocklist([]).holds("salary")
    assert not Blocklist(["", "  "])
    many = Blocklist(f"secret number {number} (a+)+$" for number in range(200))
    began = time.process_time()
    assert not many.holds("a" * 60_000, "secret number " * 4000)
    assert time.process_time() - began < 2
