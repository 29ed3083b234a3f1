"""Test the calculations for comparing two versions."""

from __future__ import annotations

import math

import pytest

from benchmarks.versions import markdown, row, upper_bound


def test_the_bound_of_a_median_is_an_order_statistic() -> None:
    assert upper_bound([1.0, 2.0, 3.0, 4.0]) == math.inf  # in one of sixteen cases, all four lie below the median
    assert upper_bound([5.0, 3.0, 1.0, 2.0, 4.0]) == 5.0  # in one of thirty-two
    assert upper_bound([float(value) for value in range(11)]) == 8.0  # in 67 of 2048 cases, nine or more of eleven do


def test_comparison_uses_the_ratio_of_each_pair() -> None:
    # The machine is ten times slower in the last pairs, but the ratio stays the same.
    pairs = [[{"cpu": speed, "p50": speed}, {"cpu": 1.1 * speed, "p50": 0.9 * speed}] for speed in (1, 1, 1, 10, 10, 10, 10)]
    found = row("put 4", 1, pairs)
    assert found["cpu"]["ratio"] == pytest.approx(1.1)
    assert found["p50"]["upper"] == pytest.approx(0.9)
    assert "| put 4 | 1 |" in markdown([found])
