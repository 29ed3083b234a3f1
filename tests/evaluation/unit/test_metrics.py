"""Test evaluation metrics against manually calculated values, their report, and the baselines."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from agent_memory_eval.baselines import SYSTEMS, Bm25, fuse, terms
from agent_memory_eval.crowd import CrowdResult, crowd_of
from agent_memory_eval.metrics import estimate, prompt_scores, recall_scores
from agent_memory_eval.question_sets import Conversation, Question, QuestionSet, Turn
from agent_memory_eval.report import EVERY, GAIN, NONE, report_of
from agent_memory_eval.runner import SERVER, Row, choose, origins


def test_recall_counts_evidence_within_the_cutoff_of_a_mixed_ranking() -> None:
    # Evidence at ranks 2, 7 and 11; one more is missing.
    ranked = ["x1", "a", "x2", "x3", "x4", "x5", "b", "x6", "x7", "x8", "c"]
    assert recall_scores(ranked, "abcd") == {"R@10": 0.5, "R@50": 0.75, "all@10": 0.0, "MRR": 0.5}
    assert recall_scores(["a", "b"], "ab") == {"R@10": 1.0, "R@50": 1.0, "all@10": 1.0, "MRR": 1.0}


def test_a_repeated_id_counts_once_and_nothing_counts_beyond_fifty() -> None:
    assert recall_scores(["x", "x", "a"], "a")["MRR"] == 0.5
    assert recall_scores([*(f"x{number}" for number in range(50)), "a"], "a")["R@50"] == 0.0
    assert recall_scores([*(f"x{number}" for number in range(49)), "a"], "a")["R@50"] == 1.0


def test_prompt_scores_count_evidence_lines_or_an_empty_prompt() -> None:
    assert prompt_scores(["a", "x", "y", "z"], "ab") == {"lines": 4, "evidence": 0.5, "precision": 0.25}
    assert prompt_scores([], "ab") == {"lines": 0, "evidence": 0.0}
    assert prompt_scores([], "") == {"lines": 0, "nothing shown": 1.0}
    assert prompt_scores(["x"], "") == {"lines": 1, "nothing shown": 0.0}


def test_interval_contains_the_mean_and_shrinks_with_more_questions() -> None:
    few, many = estimate([0.0, 1.0] * 10), estimate([0.0, 1.0] * 1000)
    assert (few.mean, few.n, many.n) == (0.5, 20, 2000)
    assert few.low < many.low < 0.5 < many.high < few.high
    # The standard error of 2,000 fair coins is 1.1 points.
    assert many.high - many.low == pytest.approx(4 * 0.5 / 2000**0.5, rel=0.1)


def row(category: str, evidence: str, ranked: str, baselines: tuple[str, str, str] = ("", "", "")) -> Row:
    question = Question(f"{category}-{ranked}", "?", category, frozenset(evidence))
    found = Row(Conversation("c", (), (question,)), question, wants_prompt=False)
    if evidence:
        rankings = zip((SERVER, *SYSTEMS), (ranked, *baselines), strict=True)
        found.recall = {system: recall_scores(ids, evidence) for system, ids in rankings}
    return found


def test_report_has_categories_and_gain_over_the_best_baseline() -> None:
    rows = [row("fact/one", "a", "a", ("a", "", "")), row("fact/two", "ab", "a", ("", "ab", "b")), row("none", "", "")]
    rows[2].prompt = prompt_scores([], "")
    report = report_of(rows)
    assert list(report) == [EVERY, NONE, "fact", "fact/one", "fact/two", "none"]
    # Dense and BM25 each find one of two; the first of equal baselines is the best.
    assert (report[EVERY]["R@10"].mean, report[EVERY]["dense"].mean, report[EVERY]["BM25"].mean) == (0.75, 0.5, 0.5)
    assert report[EVERY][GAIN].mean == 0.25
    assert report["fact/two"]["R@10"].n == 1
    assert report[NONE]["nothing shown"].mean == 1.0


def test_sample_is_deterministic_and_limits_prompts_separately() -> None:
    turn = Turn("t", "1", "user", "said", datetime(2025, 1, 1, tzinfo=UTC))
    questions = tuple(Question(f"q{number}", "?", "c", frozenset("t" if number % 2 else "")) for number in range(100))
    known = QuestionSet("set", (Conversation("c", (turn,), questions),))
    rows = choose(known, 20, 5)
    assert [one.question.id for one in rows] == [one.question.id for one in choose(known, 20, 5)]
    assert sum(bool(one.question.evidence) for one in rows) == 20
    assert [sum(one.wants_prompt for one in rows if bool(one.question.evidence) is has) for has in (True, False)] == [5, 5]
    assert len(choose(known, None, 0)) == 50


def test_memories_are_matched_to_turns_by_id_or_text() -> None:
    memories = [{"id": "t1"}, {"id": "fact", "extracted_from": ["t2", "t1"]}, {"id": "other", "extracted_from": None}, {"id": "t2"}]
    assert origins(memories, {"t1", "t2", "t3"}) == ["t1", "t2", "other"]


def test_bm25_prefers_rare_terms_and_short_documents() -> None:
    documents = ["a cat sat here", "a cat sat here with another cat, two dogs and a parrot", "a parrot", "nothing of the kind"]
    index = Bm25([terms(text) for text in documents])
    assert index.rank(terms("parrots")) == [2, 1]
    assert index.rank(terms("cat parrot"))[0] == 1
    assert index.rank(terms("zebra")) == []
    assert terms("我的护照 V2") == ["我", "的", "护", "照", "我的", "的护", "护照", "v2"]


def test_rank_fusion_prefers_items_in_both_lists() -> None:
    assert fuse([1, 2, 3], [4, 2])[0] == 2


def test_crowd_has_requested_size_and_may_change_recall_by_one_point() -> None:
    turns = tuple(Turn(f"t{number}", "1", "user", f"text {number}", datetime(2025, 1, 1, tzinfo=UTC)) for number in range(9))
    crowd = crowd_of([QuestionSet(name, (Conversation("c", turns, ()),)) for name in ("one", "two")], 450)
    assert [len(one.turns) for one in crowd] == [200, 200, 50]
    assert {turn.text for one in crowd for turn in one.turns} == {turn.text for turn in turns}
    assert len({(one.id, turn.id) for one in crowd for turn in one.turns}) == 450
    assert [CrowdResult(80.0, among).holds for among in (79.0, 81.0, 78.9, 81.1)] == [True, True, False, False]
