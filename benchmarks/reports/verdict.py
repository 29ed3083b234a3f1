"""Whether the figures of a load run keep what rows L1 and L2 of docs/guarantees.md promise."""

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
    """One criterion: what is asked, what was measured."""

    asked: str
    measured: str
    holds: bool

    def __str__(self) -> str:
        return f"{'holds ' if self.holds else 'FAILS '} {self.asked}: {self.measured}"


def _sum(values: Mapping[Any, int], but: Sequence[int] = ()) -> int:
    return sum(count for status, count in values.items() if int(status) not in but)


def _broken(found: Mapping[str, Any]) -> int:
    return sum(sum(found[kind]["broken connections"].values()) for kind in _KINDS)


def _wrong(found: Mapping[str, Any], *fine: int) -> Verdict:
    wrong = sum(_sum(found[kind]["answers"], fine) for kind in _KINDS)
    answered = sum(_sum(found[kind]["answers"]) for kind in _KINDS)
    said = f"{wrong} of {answered} answers, {_broken(found)} broken connections"
    return Verdict(f"no other answer than {', '.join(map(str, fine))}", said, not wrong and not _broken(found) and answered > 0)


def _below(name: str, measured: float | None, limit: float, unit: str) -> Verdict:
    return Verdict(f"{name} below {limit:g} {unit}", "none" if measured is None else f"{measured:g} {unit}", _is_below(measured, limit))


def _is_below(measured: float | None, limit: float) -> bool:
    return measured is not None and measured < limit


def _finished(found: Mapping[str, Any]) -> list[Verdict]:
    return [
        Verdict("nothing acknowledged is lost", f"{found['lost']} lost", found["lost"] == 0),
        _below("the backlog is empty after", found["drained_seconds"], _DRAIN_SECONDS, "s"),
        Verdict("no process died", str(found["all processes alive"]), bool(found["all processes alive"])),
    ]


def of_sustained(found: Mapping[str, Any]) -> list[Verdict]:
    """L1. Redis' memory grows with what is written and is shown, not judged."""
    growth: Mapping[str, float] = found["rss_growth_last_half_percent"]
    return [
        _wrong(found, 200),
        _below("append p99", found["append"]["p99_ms"], _APPEND_P99_MS, "ms"),
        _below("search p99", found["search"]["p99_ms"], _SEARCH_P99_MS, "ms"),
        *(_below(f"growth of the {name}'s memory in the last half", growth[name], _GROWTH_PERCENT, "%") for name in ("api", "worker")),
        *_finished(found),
    ]


def of_overload(found: Mapping[str, Any]) -> list[Verdict]:
    """L2. A refusal's time counts from when its request was sent; the 95th percentile is judged, for the machine is full."""
    refused = sum(_sum({s: n for s, n in found[kind]["answers"].items() if int(s) in _REFUSED}) for kind in _KINDS)
    untimed = sum(found[kind]["refusals without Retry-After"] for kind in _KINDS)
    times = [found[kind]["refusal_p95_ms"] for kind in _KINDS if found[kind]["refusal_p95_ms"] is not None]
    return [
        Verdict("more is offered than is served", f"{refused} refused", refused > 0),
        _wrong(found, 200, *_REFUSED),
        Verdict("every refusal has Retry-After", f"{untimed} without", untimed == 0),
        _below("refusals p95", max(times, default=None), _REFUSAL_MS, "ms"),
        *_finished(found),
    ]
