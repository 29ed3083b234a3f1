"""Test that each criterion for a flood of requests can fail independently."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from benchmarks.flood import verdicts

_QUIET: dict[str, Any] = {"answers": {200: 1000}, "broken connections": {}, "p95_ms": 10.0}
_FINE: dict[str, Any] = {
    "options": {"rounds": 2, "seconds": 10.0, "loud": {"append": 90.0, "search": 10.0}},
    "alone": {"append": _QUIET, "search": _QUIET},
    "beside the flood": {"append": _QUIET | {"p95_ms": 15.0}, "search": _QUIET | {"p95_ms": 9.0}},
    "flood": {
        "append": {"answers": {200: 300, 429: 1500}, "refusals without Retry-After": 0},
        "search": {"answers": {200: 20, 422: 10, 429: 170}, "refusals without Retry-After": 0},
    },
}


@pytest.mark.parametrize(
    ("where", "value"),
    [
        (("beside the flood", "append", "p95_ms"), 15.1),
        (("beside the flood", "search", "answers"), {200: 999, 503: 1}),
        (("beside the flood", "search", "broken connections"), {"TimeoutError": 1}),
        (("flood", "append", "answers"), {200: 300, 429: 1300}),
        (("flood", "append", "refusals without Retry-After"), 1),
        (("flood", "search", "answers"), {200: 20, 429: 179, 500: 1}),
    ],
)
def test_each_flood_criterion_fails_independently(where: tuple[str, ...], value: object) -> None:
    assert all(verdict.holds for verdict in verdicts(_FINE))
    broken = deepcopy(_FINE)
    part = broken
    for name in where[:-1]:
        part = part[name]
    part[where[-1]] = value
    assert [verdict.holds for verdict in verdicts(broken)].count(False) == 1


def test_flood_without_refusals_fails_one_criterion() -> None:
    let_in = deepcopy(_FINE)
    for kind in let_in["flood"].values():
        kind["answers"] = {200: sum(kind["answers"].values())}
    assert [verdict.holds for verdict in verdicts(let_in)].count(False) == 1
