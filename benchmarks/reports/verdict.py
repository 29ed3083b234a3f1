"""Check a load run against the promises in rows L1 and L2 of docs/guarantees.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_APPEND_P99_MS = 50.0
_SEARCH_P99_MS = 100.0
_DRAIN_SECONDS = 60.0
_GROWTH_PERCENT = 10.0
_REFUSAL_MS = 100.0
_KINDS = ("append", "search")
_REFUSED = (429, 503)


@dataclass(frozen=True, slots=True)
class Verdict:
    """A criterion, the measured value, and whether the criterion is met."""

    criterion: str
    measured: str
    holds: bool

    def __str__(self) -> str:
        return f"{'holds ' if self.holds else 'FAILS '} {self.criterion}: {self.measured}"


def _sum(values: Mapping[Any, int], but: Sequence[int] = ()) -> int:
    return sum(count for status, count in values.items() if int(status) not in but)


def _broken(result: Mapping[str, Any]) -> int:
    return sum(sum(result[kind]["broken connections"].values()) for kind in _KINDS)


def _wrong(result: Mapping[str, Any], *fine: int) -> Verdict:
    wrong = sum(_sum(result[kind]["answers"], fine) for kind in _KINDS)
    answered = sum(_sum(result[kind]["answers"]) for kind in _KINDS)
    measured = f"{wrong} of {answered} answers, {_broken(result)} broken connections"
    return Verdict(f"every answer is one of {', '.join(map(str, fine))}", measured, not wrong and not _broken(result) and answered > 0)


def _below(name: str, measured: float | None, limit: float, unit: str) -> Verdict:
    return Verdict(f"{name} below {limit:g} {unit}", "none" if measured is None else f"{measured:g} {unit}", _is_below(measured, limit))


def _is_below(measured: float | None, limit: float) -> bool:
    return measured is not None and measured < limit


def _finished(result: Mapping[str, Any]) -> list[Verdict]:
    return [
        Verdict("nothing acknowledged is lost", f"{result['lost']} lost", result["lost"] == 0),
        _below("the backlog is empty after", result["drained_seconds"], _DRAIN_SECONDS, "s"),
        Verdict("no process died", str(result["all processes alive"]), bool(result["all processes alive"])),
    ]


def of_sustained(result: Mapping[str, Any]) -> list[Verdict]:
    """Check a run against L1. Redis memory is excluded because it grows with the data."""
    growth: Mapping[str, float] = result["rss_growth_last_half_percent"]
    return [
        _wrong(result, 200),
        _below("append p99", result["append"]["p99_ms"], _APPEND_P99_MS, "ms"),
        _below("search p99", result["search"]["p99_ms"], _SEARCH_P99_MS, "ms"),
        *(_below(f"growth of the {name}'s memory in the last half", growth[name], _GROWTH_PERCENT, "%") for name in ("api", "worker")),
        *_finished(result),
    ]


def of_overload(result: Mapping[str, Any]) -> list[Verdict]:
    """Check a run against L2.

    The time of a rejection is measured from when the request was sent. The 95th percentile is used
    because the machine is fully loaded.
    """
    refused = sum(_sum({s: n for s, n in result[kind]["answers"].items() if int(s) in _REFUSED}) for kind in _KINDS)
    untimed = sum(result[kind]["refusals without Retry-After"] for kind in _KINDS)
    times = [result[kind]["refusal_p95_ms"] for kind in _KINDS if result[kind]["refusal_p95_ms"] is not None]
    return [
        Verdict("requests exceed the capacity", f"{refused} refused", refused > 0),
        _wrong(result, 200, *_REFUSED),
        Verdict("every refusal has Retry-After", f"{untimed} without", untimed == 0),
        _below("refusals p95", max(times, default=None), _REFUSAL_MS, "ms"),
        *_finished(result),
    ]
