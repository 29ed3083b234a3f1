"""Test that each criterion for a load run can fail independently."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from benchmarks.reports.verdict import of_overload, of_sustained

_KIND: dict[str, Any] = {
    "answers": {200: 1000},
    "broken connections": {},
    "p99_ms": 40.0,
    "refusal_p95_ms": None,
    "refusals without Retry-After": 0,
}
_FINE: dict[str, Any] = {
    "append": _KIND,
    "search": dict(_KIND),
    "rss_growth_last_half_percent": {"api": 1.0, "worker": 2.0, "redis": 30.0},
    "lost": 0,
    "drained_seconds": 1.5,
    "all processes alive": True,
}
_FULL: dict[str, Any] = _FINE | {"append": _KIND | {"answers": {200: 1000, 503: 900}, "refusal_p95_ms": 60.0}}


@pytest.mark.parametrize(
    ("where", "value"),
    [
        (("append", "p99_ms"), 50.1),
        (("search", "p99_ms"), None),
        (("append", "answers"), {200: 1000, 503: 1}),
        (("search", "broken connections"), {"ConnectionResetError": 1}),
        (("rss_growth_last_half_percent", "api"), 10.5),
        (("lost",), 1),
        (("drained_seconds",), None),
        (("all processes alive",), False),
    ],
)
def test_each_steady_load_criterion_fails_independently(where: tuple[str, ...], value: object) -> None:
    assert all(verdict.holds for verdict in of_sustained(_FINE))
    assert [verdict.holds for verdict in of_sustained(_with(_FINE, where, value))].count(False) == 1


@pytest.mark.parametrize(
    ("where", "value"),
    [
        (("append", "answers"), {200: 1000}),
        (("append", "answers"), {200: 1000, 503: 900, 500: 1}),
        (("search", "broken connections"), {"ConnectionResetError": 1}),
        (("append", "refusals without Retry-After"), 1),
        (("append", "refusal_p95_ms"), 101.0),
        (("lost",), 2),
    ],
)
def test_each_overload_criterion_fails_independently(where: tuple[str, ...], value: object) -> None:
    assert all(verdict.holds for verdict in of_overload(_FULL))
    assert [verdict.holds for verdict in of_overload(_with(_FULL, where, value))].count(False) == 1


def _with(figures: dict[str, Any], where: tuple[str, ...], value: object) -> dict[str, Any]:
    changed = deepcopy(figures)
    place = changed
    for name in where[:-1]:
        place = place[name]
    place[where[-1]] = value
    return changed
