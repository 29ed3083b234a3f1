"""Combine the rounds of a measurement.

The machine's speed changes from minute to minute, so compared series alternate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from statistics import fmean, median
from typing import Any

from benchmarks.measurement.meter import percentile

_COUNTED = ("requests", "embedding_calls")
_COMPARED = ("p50_ms", "cpu_per_1000")
_TIMES = {"p50_ms": 0.5, "p95_ms": 0.95, "p99_ms": 0.99}
_BLOCK, _BLOCK_PER_CLIENT = 40, 4


def count(requests: int, concurrency: int) -> int:
    """Return the number of rounds for `requests` requests.

    Rounds are short, but long enough to keep all clients busy.
    """
    return max(requests // max(_BLOCK, _BLOCK_PER_CLIENT * concurrency), 1)


def joined(rows: Iterable[dict[str, Any]], named: Sequence[str]) -> list[dict[str, Any]]:
    """Combine rows that have the same `named` values. `rounds` contains the original rows.

    Counts are added, CPU time and rates are averaged, and percentiles are recomputed. For the CPU
    usage of other processes, the maximum is used.
    """
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in named), []).append(row)
    return [_one(some) for some in groups.values()]


def _one(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    merged_row = {name: value for name, value in rows[-1].items() if name != "seconds"}
    if len(rows) == 1:
        return merged_row
    seconds = [second for row in rows for second in row["seconds"]]
    for name in merged_row:
        if name in _COUNTED:
            merged_row[name] = sum(row[name] for row in rows)
        elif name in _TIMES:
            merged_row[name] = round(percentile(seconds, _TIMES[name]) * 1000, 3)
        elif name == "per_second":
            merged_row[name] = round(fmean(row[name] for row in rows), 1)
        elif name == "foreign_cpu":
            merged_row[name] = max(row[name] for row in rows)
        elif name == "cpu_per_1000":
            requests = sum(row["requests"] for row in rows)
            merged_row[name] = {
                part: round(sum(row[name][part] * row["requests"] for row in rows) / requests, 4) for part in merged_row[name]
            }
    merged_row["rounds"] = [{name: row[name] for name in _COMPARED if name in row} for row in rows]
    return merged_row


def paired(figure: Callable[..., float], *rows: dict[str, Any]) -> float:
    """Compare series by the median of a figure over all rounds.

    Ratios of sums would depend too much on slow rounds. Series with different numbers of rounds are
    compared by their combined figures.
    """
    rounds = [row.get("rounds") or [row] for row in rows]
    if len({len(some) for some in rounds}) > 1:
        rounds = [[row] for row in rows]
    return median(figure(*together) for together in zip(*rounds, strict=True))
