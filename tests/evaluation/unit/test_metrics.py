"""The figures of an evaluation, against values worked out by hand."""

from __future__ import annotations

import math

import pytest

from agent_memory_eval.metrics import NAMES, mean, measure, percentile


def test_all_evidence_first_is_the_best_there_is() -> None:
    assert measure(["a", "b", "c"], frozenset("ab")) == dict.fromkeys(NAMES, 1.0)


def test_nothing_found_is_nothing() -> None:
    assert measure(["x", "y"], frozenset("ab")) == dict.fromkeys(NAMES, 0.0)
    assert measure([], frozenset("a")) == dict.fromkeys(NAMES, 0.0)


def test_a_mixed_ranking() -> None:
    # Evidence at the places 2 and 7, one more is missing.
    scores = measure(["x1", "a", "x2", "x3", "x4", "x5", "b"], frozenset("abc"))
    assert (scores["R@5"], scores["R@10"], scores["R@50"]) == pytest.approx((1 / 3, 2 / 3, 2 / 3))
    assert (scores["any@5"], scores["any@10"]) == (1.0, 1.0)
    assert (scores["all@5"], scores["all@50"]) == (0.0, 0.0)
    assert scores["MRR"] == 0.5
    best = 1 + 1 / math.log2(3) + 1 / math.log2(4)
    assert scores["nDCG@10"] == pytest.approx((1 / math.log2(3) + 1 / math.log2(8)) / best)
    assert scores["nDCG@5"] == pytest.approx((1 / math.log2(3)) / best)


def test_more_evidence_than_places() -> None:
    evidence = frozenset(f"e{number}" for number in range(8))
    scores = measure([f"e{number}" for number in range(5)], evidence)
    assert (scores["R@5"], scores["all@5"], scores["nDCG@5"]) == (5 / 8, 0.0, 1.0)


def test_a_repeated_name_counts_once_and_nothing_counts_beyond_fifty() -> None:
    assert measure(["x", "x", "a"], frozenset("a"))["MRR"] == 0.5
    assert measure([*(f"x{number}" for number in range(50)), "a"], frozenset("a"))["MRR"] == 0.0
    assert measure([*(f"x{number}" for number in range(49)), "a"], frozenset("a"))["R@50"] == 1.0


def test_means_and_percentiles() -> None:
    rows = [measure(["a"], frozenset("a")), measure(["x", "a"], frozenset("a"))]
    assert mean(rows)["MRR"] == 0.75
    assert mean([]) == {}
    assert percentile([3.0, 1.0, 2.0, 4.0], 0.5) == 2.0
    assert percentile([3.0, 1.0, 2.0, 4.0], 0.95) == 4.0
    assert percentile([7.0], 0.5) == 7.0
    assert percentile([], 0.5) is None
