"""Test the detection of near-identical restatements."""

from __future__ import annotations

import pytest

from agent_memory.foundation.text.normalization import restatement


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("I am vegan", "I'm a vegan"),
        ("I’m a vegan!", "i am VEGAN."),
        ("I do not eat meat", "I don't eat meat"),
        ("I cannot eat nuts", "I can't eat nuts"),
        ("I won't go to Rome", "I will not go to Rome"),
        ("My pills are called Tensoril.", "My pills, they are called Tensoril."),
        ("My sister lives in Rome", "Well, my sister still lives in Rome"),
        ("Mein Arzt heißt Müller", "mein Arzt heißt „Müller“"),
    ],
)
def test_near_identical_wordings_have_the_same_restatement(first: str, second: str) -> None:
    assert restatement(first) == restatement(second) != ""


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("I eat shellfish", "I do not eat shellfish"),
        ("My space is number 71", "My space is number 17"),
        ("My teacher is called Anselma Roth", "My teacher is called Benedikta Roth"),
        ("I live in Oslo", "I lived in Oslo"),
        ("I am in Rome", "I was in Rome"),
        ("He gave her the keys", "She gave him the keys"),
        ("I love Anna", "Anna loves me"),
        ("My brother is older", "My brother is younger"),
        ("I am vegan", "Am I vegan?"),
        ("I am vegan", "I am vegan?"),
        ("I take the pills in the morning", "I take the pills in the evening"),
    ],
)
def test_another_name_number_tense_or_negation_has_another_restatement(first: str, second: str) -> None:
    assert restatement(first) != restatement(second)


@pytest.mark.parametrize("text", ["", "yes", "the", "It is.", "word " * 100])
def test_too_short_or_long_text_has_no_restatement(text: str) -> None:
    assert restatement(text) == ""
