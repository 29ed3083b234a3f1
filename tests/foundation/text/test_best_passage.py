"""The passage of a long text that a prompt shows: whole sentences around what the query asks for."""

from __future__ import annotations

import pytest

from agent_memory.text.passages.best_passage import best_passage
from agent_memory.text.terms import query_terms

COMMITTEE = "The committee met on the second floor and discussed the budget in great detail. "
CODE = "My locker code at the gym is 7719. "


def passage(text: str, query: str, tokens: int = 100) -> str:
    start, end = best_passage(text, query_terms(query), tokens)
    return text[start:end]


@pytest.mark.parametrize(("before", "after"), [(160, 0), (80, 80), (0, 160)])
def test_a_passage_holds_the_sentence_that_answers(before: int, after: int) -> None:
    found = passage(COMMITTEE * before + CODE + COMMITTEE * after, "What is my locker code at the gym?")
    assert CODE.strip() in found
    assert found.strip().startswith(("The committee", "My locker"))
    assert found.strip().endswith(("detail.", "7719."))
    assert len(found.encode()) <= 300


def test_rare_words_count_more_than_frequent_ones() -> None:
    text = "The budget of the committee is discussed by the committee. " * 50 + "Zora takes the minutes. " + "The committee rests. " * 50
    assert "Zora" in passage(text, "committee budget Zora", 40)


def test_a_passage_holds_several_words_near_each_other_rather_than_one_alone() -> None:
    text = "Oslo is cold. " + COMMITTEE * 40 + "Anna moved to Oslo with her cello. " + COMMITTEE * 40 + "Anna sang. "
    assert "Anna moved to Oslo with her cello." in passage(text, "Anna Oslo cello", 50)


def test_text_without_blanks_is_cut_between_its_sentences() -> None:
    text = "我住在上海浦东。" * 400 + "我对花生过敏。" + "我喜欢看书。" * 400
    found = passage(text, "花生过敏")
    assert "我对花生过敏。" in found
    assert found.endswith("。")


def test_without_a_word_of_the_query_it_is_the_beginning() -> None:
    assert best_passage(COMMITTEE * 100, query_terms("quasar"), 50)[0] == 0
    assert best_passage("", query_terms("quasar"), 50) == (0, 0)


@pytest.mark.parametrize("text", ["x" * 50_000, "word " * 20_000, "." * 50_000, "\n" * 50_000, "a. " * 20_000])
def test_any_text_has_a_passage_within_the_tokens(text: str) -> None:
    assert 0 < len(passage(text, "word a", 50).encode()) <= 200
