"""Test finding a name and number in one text, and recognizing the same thing in another."""

from __future__ import annotations

import pytest

from agent_memory.features.recall.referents import referents


@pytest.mark.parametrize(
    ("text", "wordings"),
    [
        ("I live on Candle Street 8.", ["candle street"]),
        ("We moved into the flat on Ropewalk 3.", ["ropewalk 3"]),
        ("Ich wohne im Gartenweg 12.", ["gartenweg 12"]),
        ("Wir haben Zimmer 12 gebucht, im Hotel Alte Post 4.", ["zimmer 12", "hotel alte post"]),
        ("Vivo en Calle Luna 5.", ["calle luna"]),
        ("I fly with KLM 1023 on May 3.", ["klm 1023"]),
        ("The meeting is in Room No. 204.", ["room 204"]),
        ("I'm reading Chapter 5 and Chapter 6.", ["chapter 5", "chapter 6"]),
    ],
)
def test_name_with_a_number_is_a_referent(text: str, wordings: list[str]) -> None:
    assert [referent.wording for referent in referents(text)] == wordings


@pytest.mark.parametrize(
    "text",
    [
        "I have 3 cats.",
        "I was born on May 3, 1988.",
        "We meet on Monday 3.",
        "Am 3. Juni um 8 Uhr.",
        "Noch 3 Tage.",
        "Only 12 left.",
        "I'm 100 % sure.",
        "I like Anna, 3 cats and tea.",
        "我住在人民路12号。",
        "",
    ],
)
def test_counts_dates_and_sentence_starts_are_not_referents(text: str) -> None:
    assert list(referents(text)) == []


@pytest.mark.parametrize(
    ("text", "other", "named"),
    [
        ("I live on Candle Street 8.", "Candle Street was damp.", True),
        ("I live on Candle Street 8.", "I left candle street no. 8.", True),
        ("I live on Candle Street 8.", "The baker is in Candle Street 20.", False),
        ("I live on Candle Street 8.", "I bought a candle on the street.", False),
        ("I live on Ropewalk 3.", "I am back on Ropewalk 3.", True),
        ("I live on Ropewalk 3.", "I took a ropewalk.", False),
        ("I live on Ropewalk 3.", "Ropewalk 31 burned down.", False),
    ],
)
def test_referent_is_recognized_in_another_text(text: str, other: str, named: bool) -> None:
    (referent,) = referents(text)
    assert referent.is_named_in(other) is named
