"""Compare the measured figures with the goals. Goals that were not measured are skipped."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.measurement.rounds import paired
from benchmarks.reports.report import beside_limits, table
from benchmarks.reports.verdict import Verdict

_SMALL, _LARGE = 10_000, 1_000_000
_BYTES_AT = 100_000


def goals(result: dict[str, Any]) -> list[Verdict]:
    """Return a verdict for each goal, in the order of the operations."""
    rows = {(row["operation"], row["memories"], row["concurrency"]): row for row in result["operations"]}
    return [
        *_prompt(result, rows),
        *_session(result, rows),
        *_create(result, rows),
        *_pipeline(result),
        *_growth(result),
        *_two(result),
        *_start(result),
    ]


_Rows = dict[tuple[str, int, int], dict[str, Any]]


def _one(rows: _Rows, name: str, concurrency: int = 1) -> dict[str, Any] | None:
    """Return an operation's row for the store size closest to 10,000 memories."""
    candidates = [row for (operation, _, at_once), row in rows.items() if (operation, at_once) == (name, concurrency)]
    return min(candidates, key=lambda row: abs(row["memories"] - _SMALL), default=None)


def _cpu(result: dict[str, Any], row: dict[str, Any] | None, most: float) -> Iterator[Verdict]:
    beside = None if row is None else beside_limits(result, row)
    if row is not None and beside is not None:
        ratio = beside["cpu_ratio"]
        yield Verdict(f"{row['operation']}: API CPU at most {most:g} x ((a) + (b))", f"{ratio:.2f}", ratio <= most)


def _prompt(result: dict[str, Any], rows: _Rows) -> Iterator[Verdict]:
    repeated, new = _one(rows, "prompt"), _one(rows, "prompt, new query")
    yield from _cpu(result, repeated, 2.5)
    beside = None if repeated is None else beside_limits(result, repeated)
    if beside is not None:
        yield Verdict("prompt: p50 at most 2 ms above (a) + (b)", f"{beside['beyond_ms']:+.2f} ms", beside["beyond_ms"] <= 2)
    if repeated is not None and new is not None:
        more = paired(lambda later, first: later["p50_ms"] - first["p50_ms"], new, repeated)  # pyright: ignore[reportUnknownLambdaType]
        yield Verdict("prompt with a new query: p50 at most 4 ms longer than with a cached query", f"{more:+.2f} ms", more <= 4)
    many = _one(rows, "prompt, new query", 32)
    if many is not None:
        share = many["embedding_calls"] / many["requests"]
        yield Verdict("embedding calls per prompt, with 32 prompts at once: at most 0.5", f"{share:.2f}", share <= 0.5)


def _session(result: dict[str, Any], rows: _Rows) -> Iterator[Verdict]:
    for name in ("put 4", "append to 10", "get last 20 of 10"):
        yield from _cpu(result, _one(rows, name), 2.0)
    for name in ("append to", "get last 20 of"):
        short, long = _one(rows, f"{name} 10"), _one(rows, f"{name} 1000")
        if short is not None and long is not None:
            ratio = paired(lambda now, was: _both(now) / _both(was), long, short)  # pyright: ignore[reportUnknownLambdaType]
            yield Verdict(f"{name} 1,000 messages: CPU at most 1.2 x that for 10 messages", f"{ratio:.2f}", ratio <= 1.2)


def _both(row: dict[str, Any]) -> float:
    return sum(row["cpu_per_1000"].get(part, 0.0) for part in ("api", "redis"))


def _create(result: dict[str, Any], rows: _Rows) -> Iterator[Verdict]:
    yield from _cpu(result, _one(rows, "create 20"), 3.0)
    calls = result.get("pipeline", {}).get("calls_for_100")
    if calls is not None:
        yield Verdict("100 memories created in 5 batches: at most 5 embedding calls", str(calls), calls <= 5)


def _pipeline(result: dict[str, Any]) -> Iterator[Verdict]:
    times = result.get("pipeline", {}).get("searchable_ms")
    if times is None:
        return
    p95 = times["p95"]
    yield Verdict("from append to searchable: p95 below 250 ms", f"{p95:.0f} ms", p95 < 250)


def small_and_large(result: dict[str, Any]) -> list[dict[str, Any]] | None:
    """Return the rows for single searches in 10,000 and 1,000,000 memories.

    Return None if a row is missing.
    """
    if "growth" in result:
        return result["growth"]
    sizes = {row["memories"]: row for row in result["operations"] if (row["operation"], row["concurrency"]) == ("search", 1)}
    return [sizes[_SMALL], sizes[_LARGE]] if {_SMALL, _LARGE} <= sizes.keys() else None


def _growth(result: dict[str, Any]) -> Iterator[Verdict]:
    for store in result["stores"]:
        if store["memories"] == _BYTES_AT:
            each = store["bytes_per_memory"]
            yield Verdict("100,000 memories: at most 5 KiB each", f"{each / 1024:.2f} KiB", each <= 5120)
    pair = small_and_large(result)
    if pair is not None:
        small, large = pair
        ratio = large["p95_ms"] / small["p95_ms"]
        yield Verdict("search among 1,000,000 memories: p95 at most 3 x that among 10,000", f"{ratio:.2f}", ratio <= 3)


_HOW = {
    "cores": "each process has a core of its own",
    "quota": "each process has a quarter of a core",
    "cpu": "computed from their CPU per turn",
}


def _two(result: dict[str, Any]) -> Iterator[Verdict]:
    two = result.get("two") or {}
    if "ratio" in two:
        yield Verdict(
            f"2 API processes serve at least 1.7 x as many chat turns per second as 1 ({_HOW[two['how']]})",
            f"{two['ratio']:.2f}",
            two["ratio"] >= 1.7,
        )


def _start(result: dict[str, Any]) -> Iterator[Verdict]:
    sizes = result.get("sizes")
    if sizes is None:
        return
    if "serve_seconds" in sizes:
        yield Verdict("`agent-memory serve` ready in less than 3 s", f"{sizes['serve_seconds']:.2f} s", sizes["serve_seconds"] < 3)
    yield Verdict("`agent-memory --help` in less than 0.4 s", f"{sizes['help_seconds']:.2f} s", sizes["help_seconds"] < 0.4)
    installed = sizes["installed_bytes"] / 1e6
    yield Verdict("installed size without Redis and the local model: less than 250 MB", f"{installed:.0f} MB", installed < 250)


def markdown(result: dict[str, Any]) -> str:
    """Return a list of failed measurements and a table of the goals."""
    rows = [[goal.criterion, goal.measured, "yes" if goal.holds else "no"] for goal in goals(result)]
    failed = "".join(
        f"- {'once, then measured or listed again' if one['again'] else 'not measured'}: {one['what']}: {one['why'][-300:]}\n"
        for one in result.get("failures", ())
    )
    return (f"### What failed\n\n{failed}\n" if failed else "") + "### Goals\n\n" + table(["goal", "measured", "reached"], rows) + "\n"
