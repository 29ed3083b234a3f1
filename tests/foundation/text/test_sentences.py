"""Test splitting texts into sentences."""

from __future__ import annotations

import pytest

from agent_memory.foundation.text.passages.sentences import split_sentences


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ("Dr. Smith met J. Brown on Jan. 5th. They left.", ["Dr. Smith met J. Brown on Jan. 5th.", "They left."]),
        ("No. I did not. See No. 7.", ["No.", "I did not.", "See No. 7."]),
        ("It ended at 5 p.m. on Friday etc. Then we left.", ["It ended at 5 p.m. on Friday etc.", "Then we left."]),
        ('"Really?" she asked... and left. Wait… what?', ['"Really?"', "she asked... and left.", "Wait… what?"]),
        ("Version 3.14 is at https://a.b/c.d?e. Good.", ["Version 3.14 is at https://a.b/c.d?e.", "Good."]),
        ("你好。天气很好！真的吗？「是的。」好", ["你好。", "天气很好！", "真的吗？", "「是的。」", "好"]),
        ("a heading\n\n- item one\n- item two\nThis line\ngoes on", ["a heading", "- item one", "- item two", "This line goes on"]),
        ("3. Buy milk\n4. Call Ann", ["3. Buy milk", "4. Call Ann"]),
        (" \n ", []),
        ("", []),
    ],
)
def test_text_is_split_into_sentences(text: str, sentences: list[str]) -> None:
    assert split_sentences(text) == sentences


def test_text_without_sentence_ends_is_cut_without_loss() -> None:
    text = "word " * 1000 + "x" * 3000
    pieces = split_sentences(text)
    assert max(map(len, pieces)) <= 1000
    assert "".join(pieces).replace(" ", "") == text.replace(" ", "")


def test_german_ordinal_does_not_end_a_sentence() -> None:
    text = "Wir ziehen am 2. Juni nach Wolgast. Dort wohnen wir im 3. Stock. Am Umzug helfen 4. Dann feiern wir."
    assert split_sentences(text) == [
        "Wir ziehen am 2. Juni nach Wolgast.",
        "Dort wohnen wir im 3. Stock.",
        "Am Umzug helfen 4.",
        "Dann feiern wir.",
    ]
