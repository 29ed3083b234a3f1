"""Test that a failed benchmark part is retried and reported while the rest continues."""

from __future__ import annotations

import pytest

from benchmarks.measurement.attempts import Attempts
from benchmarks.reports.document import BEGIN, END, merged, page
from benchmarks.reports.goals import goals, markdown


async def test_failed_part_is_retried_once_and_reported() -> None:
    said, tries = list[str](), 0

    async def work() -> int:
        nonlocal tries
        tries += 1
        if tries == 1:
            raise RuntimeError("Redis does not answer")
        return 7

    async def never() -> int:
        raise ConnectionResetError("gone")

    attempts = Attempts(said.append, 60, pause_seconds=0)
    assert await attempts.of("first", work) == 7
    assert await attempts.of("second", never) is None
    assert [(one["what"], one["again"]) for one in attempts.failures] == [("first", True), ("second", True), ("second", False)]
    assert "Redis does not answer" in attempts.failures[0]["why"]
    assert len(said) == 3


async def test_no_part_starts_after_the_time_limit() -> None:
    async def work() -> int:
        raise AssertionError("begun")

    attempts = Attempts(lambda _: None, 0, pause_seconds=0)
    assert await attempts.of("late", work) is None
    assert "--minutes" in attempts.failures[0]["why"]


def test_incomplete_run_reports_its_goals_and_failures() -> None:
    result = {"operations": [], "limits": [], "stores": [{"memories": 100_000, "bytes_per_memory": 5000, "redis_bytes": 1}]}
    result["failures"] = [{"what": "search x32", "why": "503", "again": False}]
    assert [goal.holds for goal in goals(result)] == [True]
    assert "not measured: search x32: 503" in markdown(result)


def test_results_are_written_between_the_page_markers() -> None:
    small = {"operations": [], "limits": [], "stores": [{"memories": 1000, "bytes_per_memory": 1, "redis_bytes": 1}]}
    large = {
        **small,
        "stores": [
            {"memories": 1000, "bytes_per_memory": 2, "redis_bytes": 1},
            {"memories": 10**6, "bytes_per_memory": 3, "redis_bytes": 1},
        ],
    }
    both = merged([small, large])
    assert [store["bytes_per_memory"] for store in both["stores"]] == [1, 3]
    shown = page(f"before\n{BEGIN}\nformer\n{END}\nafter\n", both)
    assert shown.startswith(f"before\n{BEGIN}\n")
    assert shown.endswith(f"{END}\nafter\n")
    assert "former" not in shown
    assert "| 1,000,000 |" in shown
    assert page(shown, both) == shown
    with pytest.raises(ValueError, match="figures"):
        page("no marks", both)
