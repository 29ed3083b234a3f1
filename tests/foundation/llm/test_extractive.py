"""Sentences, and which of them are central."""

from __future__ import annotations

import numpy as np
import pytest

from agent_memory.llm.local.embedder import LocalEmbedder
from agent_memory.llm.local.extractive import central_sentences, split_sentences


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
def test_splitting(text: str, sentences: list[str]) -> None:
    assert split_sentences(text) == sentences


def test_sentences_without_an_end_are_cut_and_nothing_is_lost() -> None:
    text = "word " * 1000 + "x" * 3000
    pieces = split_sentences(text)
    assert max(map(len, pieces)) <= 1000
    assert "".join(pieces).replace(" ", "") == text.replace(" ", "")


async def test_central_sentences_are_about_the_subject(local: LocalEmbedder) -> None:
    sentences = [
        "Ann adopted a dog called Rex in March.",
        "Rex is afraid of thunder, so Ann stays at home with her dog in storms.",
        "By the way, the printer is out of ink.",
        "Ann takes her dog Rex to the river every morning.",
        "Ann walks Rex, her dog, to the river every morning.",
        "Lunch was fine.",
    ]
    chosen = central_sentences(await local.embed(sentences), limit=3)
    assert chosen == sorted(chosen)
    assert len(chosen) == 3
    assert not {2, 5} & set(chosen)
    assert not {3, 4} <= set(chosen)


def test_limits_and_budgets() -> None:
    vectors = np.eye(6, dtype=np.float32)
    assert central_sentences(vectors[:0], limit=3) == []
    assert central_sentences(vectors, limit=0) == []
    assert len(central_sentences(vectors, limit=100)) == 6
    chosen = central_sentences(vectors, limit=6, lengths=[50, 10, 10, 50, 10, 90], budget=35)
    assert chosen == [1, 2, 4]
    assert central_sentences(vectors[:1], limit=1) == [0]


def test_many_sentences() -> None:
    random = np.random.default_rng(3)
    vectors = random.normal(size=(4000, 32)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    assert len(set(central_sentences(vectors, limit=20))) == 20


def test_a_german_ordinal_ends_no_sentence() -> None:
    text = "Wir ziehen am 2. Juni nach Wolgast. Dort wohnen wir im 3. Stock. Am Umzug helfen 4. Dann feiern wir."
    assert split_sentences(text) == [
        "Wir ziehen am 2. Juni nach Wolgast.",
        "Dort wohnen wir im 3. Stock.",
        "Am Umzug helfen 4.",
        "Dann feiern wir.",
    ]
