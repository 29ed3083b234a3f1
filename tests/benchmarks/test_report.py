"""Test the ratios to limits and the comparisons of runs in a benchmark report."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from benchmarks.measurement.meter import figures, percentile
from benchmarks.measurement.rounds import count, joined, paired
from benchmarks.reports.document import merged
from benchmarks.reports.goals import goals
from benchmarks.reports.report import beside_limits, compare, markdown
from benchmarks.two import ratios


def _row(operation: str, p50: float, **cpu: float) -> dict[str, Any]:
    return {
        **figures([p50 / 1000] * 4, 1.0, {}, 0.0),
        "operation": operation,
        "concurrency": 1,
        "memories": 10_000,
        "cpu_per_1000": cpu,
        "embedding_calls": 0,
    }


RESULT: dict[str, Any] = {
    "operations": [
        _row("put 4", 2.0, api=0.9, redis=0.1),
        _row("search, new query", 5.0, api=3.0, redis=1.0),
        _row("chat turn", 9.0, api=4.0),
    ],
    "limits": [
        {**_row("put 4", 0.5, bare=0.2), "limit": "bare"},
        {**_row("put 4", 0.3, **{"redis-py": 0.1}), "limit": "redis"},
        {**_row("search, new query", 0.5, bare=0.5), "limit": "bare"},
        {**_row("search, new query", 1.5, **{"redis-py": 0.5}), "limit": "redis"},
    ],
    "stores": [{"memories": 10_000, "redis_bytes": 2**20, "bytes_per_memory": 105}],
    "sizes": {"help_seconds": 0.1, "import_seconds": 0.9, "installed_bytes": 150_000_000},
    "pipeline": {"searchable_ms": {"p50": 90.0, "p95": 120.0, "p99": 130.0}, "workers": {"1": {"memories_per_second": 900}}},
    "two": {
        "how": "quota",
        "ratio": 1.82,
        "rounds": [1.9, 1.82, 1.8],
        "ratio_by_cpu": 1.85,
        "1": _row("chat turn", 9.0, api=4.0),
        "2": _row("chat turn", 9.0, api=4.4),
    },
}


def test_operation_is_compared_with_both_limits() -> None:
    put, search, chat = RESULT["operations"]
    assert beside_limits(RESULT, put) == pytest.approx({"floor_cpu": 0.3, "cpu_ratio": 3.0, "floor_p50_ms": 0.8, "beyond_ms": 1.2})
    assert beside_limits(RESULT, search) == pytest.approx({"floor_cpu": 1.0, "cpu_ratio": 3.0, "floor_p50_ms": 2.0, "beyond_ms": 3.0})
    assert beside_limits(RESULT, chat) is None


def test_the_report_shows_every_operation() -> None:
    shown = markdown(RESULT)
    for line in ("| put 4 | 1 | 2.00 |", "| chat turn | 1 | 9.00 |", "| 10,000 |", "| 3.00 | +1.20 |"):
        assert line in shown


def test_two_runs_are_compared_row_by_row() -> None:
    after = copy.deepcopy(RESULT)
    after["operations"][0]["cpu_per_1000"]["api"] = 0.45
    after["operations"][1]["operation"] = "only here"
    lines = compare(RESULT, after)
    assert "| put 4, 10,000, x1 | 0.90 | 0.45 | -50 % | 2.00 | 2.00 | +0 % |" in lines
    assert "only here" not in lines


def test_rounds_of_a_measurement_become_one_row() -> None:
    rounds = [
        {
            "name": "a",
            "requests": len(seconds),
            "per_second": 10.0,
            "p50_ms": p50,
            "seconds": seconds,
            "foreign_cpu": busy,
            "cpu_per_1000": {"api": cpu},
            "rss": {},
        }
        for p50, busy, cpu, seconds in ((1.0, 0.0, 2.0, [0.001] * 3), (9.0, 0.5, 4.0, [0.009]), (2.0, 0.1, 5.0, [0.002] * 2))
    ]
    other = {"name": "b", "requests": 1, "seconds": [0.1]}
    first, second = joined([*rounds, other], ["name"])
    assert (first["requests"], first["p50_ms"], first["foreign_cpu"], first["cpu_per_1000"]) == (6, 1.5, 0.5, {"api": 3.3333})
    assert second == {"name": "b", "requests": 1}
    assert "seconds" not in first
    assert [(one["p50_ms"], one["cpu_per_1000"]["api"]) for one in first["rounds"]] == [(1.0, 2.0), (9.0, 4.0), (2.0, 5.0)]


@pytest.mark.parametrize(
    ("requests", "concurrency", "rounds"), [(800, 1, 20), (800, 8, 20), (800, 32, 6), (200, 1, 5), (20, 1, 1), (100, 32, 1)]
)
def test_rounds_are_short_but_long_enough_for_all_clients(requests: int, concurrency: int, rounds: int) -> None:
    assert count(requests, concurrency) == rounds


def test_alternating_measurements_are_compared_pairwise() -> None:
    def rounds(name: str, *cpu: float) -> list[dict[str, object]]:
        return [{"name": name, "requests": 10, "seconds": [], "cpu_per_1000": {"api": used}} for used in cpu]

    def ratio(ours: dict[str, dict[str, float]], theirs: dict[str, dict[str, float]]) -> float:
        return ours["cpu_per_1000"]["api"] / theirs["cpu_per_1000"]["api"]

    # The machine was ten times slower in the last round, and slower still during the first of its two measurements.
    ours, theirs = joined([*rounds("ours", 2.0, 2.1, 40.0), *rounds("theirs", 1.0, 1.0, 10.0)], ["name"])
    assert paired(ratio, ours, theirs) == pytest.approx(2.1)
    assert paired(ratio, ours, {"cpu_per_1000": {"api": 7.35}}) == pytest.approx(2.0)  # the mean, if only one side has rounds


def test_percentiles_lie_between_neighboring_values() -> None:
    assert percentile([3.0, 1.0, 2.0, 4.0], 0.5) == 2.5
    assert percentile([7.0], 0.99) == 7.0


def test_goals_are_judged_from_available_figures_only() -> None:
    told = {goal.criterion.split(":")[0]: goal.holds for goal in goals(RESULT)}
    assert told["put 4"] is False
    assert told["from append to searchable"] is True
    assert not any(asked.startswith(("prompt", "100,000 memories", "search among")) for asked in told)
    better = copy.deepcopy(RESULT)
    better["operations"][0]["cpu_per_1000"]["api"] = 0.6
    assert {goal.criterion.split(":")[0]: goal.holds for goal in goals(better)}["put 4"] is True


def test_two_processes_are_compared_with_one_round_by_round() -> None:
    rows = [
        {"processes": processes, "per_second": rate, "cpu_per_1000": {"api": cpu}}
        for processes, rate, cpu in ((1, 100.0, 4.0), (2, 190.0, 4.4), (2, 80.0, 9.0), (1, 50.0, 8.1), (1, 90.0, 4.4), (2, 180.0, 4.4))
    ]
    assert ratios(rows, "quota") == {"ratio": 1.9, "rounds": [1.9, 1.6, 2.0], "ratio_by_cpu": 1.818}
    assert ratios(rows, "cpu") == {"ratio": 1.818, "rounds": [1.818, 1.8, 2.0], "ratio_by_cpu": 1.818}


@pytest.mark.parametrize(("how", "words"), [("cores", "a core of its own"), ("quota", "a quarter of a core"), ("cpu", "CPU per turn")])
def test_two_process_goal_names_its_measurement_method(how: str, words: str) -> None:
    for ratio, holds in ((1.82, True), (1.67, False)):
        result = copy.deepcopy(RESULT)
        result["two"] |= {"ratio": ratio, "how": how}
        verdict = next(goal for goal in goals(result) if goal.criterion.startswith("2 API processes"))
        assert words in verdict.criterion
        assert (verdict.measured, verdict.holds) == (f"{ratio:.2f}", holds)
    older = {**RESULT, "two": {number: RESULT["two"][number] for number in ("1", "2")}}
    assert not [goal for goal in goals(older) if goal.criterion.startswith("2 API")]
    assert "chat turns per s, 2 API process(es) |" in markdown(older)


def test_a_million_memories_are_compared_within_their_own_run() -> None:
    usual, million = ({**copy.deepcopy(RESULT), "operations": [_row("search", p50)]} for p50 in (2.0, 9.0))
    large = {**_row("search", 18.0), "memories": 1_000_000}
    million["operations"].append(large)
    verdict = next(goal for goal in goals(merged([usual, million])) if goal.criterion.startswith("search among"))
    assert (verdict.measured, verdict.holds) == ("2.00", True)
