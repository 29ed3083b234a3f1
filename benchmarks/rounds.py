"""Rounds of a measurement as one: a machine's speed changes from minute to minute, so what is compared is measured in turns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import fmean, median
from typing import Any

ROUNDS = 3
_COUNTED = ("requests", "embedding_calls")


def joined(rows: Iterable[dict[str, Any]], named: Sequence[str]) -> list[dict[str, Any]]:
    """One row for all of the same name: counts are added, CPU and rates are means, times the medians of the rounds' own."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in named), []).append(row)
    return [some[0] if len(some) == 1 else _one(some) for some in groups.values()]


def _one(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    found = dict(rows[-1])
    for name in found:
        if name in _COUNTED:
            found[name] = sum(row[name] for row in rows)
        elif name.endswith("_ms"):
            found[name] = round(median(row[name] for row in rows), 3)
        elif name == "per_second":
            found[name] = round(fmean(row[name] for row in rows), 1)
        elif name == "foreign_cpu":
            found[name] = max(row[name] for row in rows)
        elif name == "cpu_per_1000":
            requests = sum(row["requests"] for row in rows)
            found[name] = {
                part: round(sum(row[name][part] * row["requests"] for row in rows) / requests, 4) for part in rows[-1]["cpu_per_1000"]
            }
    return found
