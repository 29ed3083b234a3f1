"""Format a run as Markdown tables next to its limits, or compare two runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from benchmarks.limits.processes import LIMITS
from benchmarks.measurement.rounds import paired


def _cpu(row: dict[str, Any], name: str) -> float:
    return float(row["cpu_per_1000"].get(name, 0.0))


def _limit(result: dict[str, Any], limit: str, operation: str, concurrency: int) -> dict[str, Any] | None:
    rows = (r for r in result["limits"] if (r["limit"], r["operation"], r["concurrency"]) == (limit, operation, concurrency))
    return next(rows, None)


def beside_limits(result: dict[str, Any], row: dict[str, Any]) -> dict[str, float] | None:
    """Compare an operation with the sum of its limits (a) + (b), round by round.

    Return the ratio of the API's CPU usage and the difference of the medians in ms, or None if the
    operation has no limits.
    """
    name = row["operation"]
    if name not in LIMITS:
        return None
    bare, raw = (_limit(result, limit, name, row["concurrency"]) for limit in ("bare", "redis"))
    if bare is None or raw is None:
        return None

    def cpu_ratio(ours: dict[str, Any], a: dict[str, Any], b: dict[str, Any]) -> float:
        return _cpu(ours, "api") / floor if (floor := _floor(a, b)) else float("nan")

    def beyond_ms(ours: dict[str, Any], a: dict[str, Any], b: dict[str, Any]) -> float:
        return float(ours["p50_ms"] - a["p50_ms"] - b["p50_ms"])

    return {
        "floor_cpu": _floor(bare, raw),
        "cpu_ratio": paired(cpu_ratio, row, bare, raw),
        "floor_p50_ms": bare["p50_ms"] + raw["p50_ms"],
        "beyond_ms": paired(beyond_ms, row, bare, raw),
    }


def _floor(bare: dict[str, Any], raw: dict[str, Any]) -> float:
    return _cpu(bare, "bare") + _cpu(raw, "redis-py")


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a Markdown table with text in the first column and figures in the others."""
    lines = [f"| {' | '.join(head)} |", f"|---{'|---:' * (len(head) - 1)}|"]
    return "\n".join([*lines, *(f"| {' | '.join(str(cell) for cell in row)} |" for row in rows)])


def markdown(result: dict[str, Any]) -> str:
    """Return the tables for the entire run."""
    parts = [_operations(result), _growth(result), _others(result)]
    return "\n\n".join(parts) + "\n"


_SUMMARY = (
    *("put 4", "append to 10", "get last 20 of 10", "create 20", "search", "search, new query", "prompt", "prompt, new query"),
    "chat turn",
)


def summary(result: dict[str, Any]) -> str:
    """Return the tables for the documentation.

    They show growth, and the main operations at the lowest and highest concurrency.
    """
    measured = {row["memories"] for row in result["operations"] if row["operation"] == "put 4"}
    rows = {(row["operation"], row["concurrency"]): row for row in result["operations"] if row["memories"] in measured}
    levels = sorted({concurrency for _, concurrency in rows})
    head, lines = ["operation"], [[name] for name in _SUMMARY if any((name, level) in rows for level in levels)]
    for level in (levels[0], levels[-1]) if levels else ():
        head += [f"x{level}: p50 / p95 ms", f"x{level}: requests/s", f"x{level}: API CPU"]
        for line in lines:
            if row := rows.get((line[0], level)):
                line += [f"{row['p50_ms']:.1f} / {row['p95_ms']:.1f}", f"{row['per_second']:.0f}", f"{_cpu(row, 'api'):.2f}"]
            else:
                line += [""] * 3
    return "### Operations\n\n" + table(head, lines) + "\n\n" + _growth(result) + "\n"


def _operations(result: dict[str, Any]) -> str:
    rows: list[list[object]] = []
    measured = {row["memories"] for row in result["operations"] if row["operation"] == "put 4"}
    for row in result["operations"]:
        if row["memories"] not in measured:
            continue
        beside = beside_limits(result, row)
        rows.append(
            [
                row["operation"],
                row["concurrency"],
                f"{row['p50_ms']:.2f}",
                f"{row['p95_ms']:.2f}",
                f"{row['p99_ms']:.2f}",
                f"{row['per_second']:.0f}",
                f"{_cpu(row, 'api'):.2f}",
                f"{_cpu(row, 'redis'):.2f}",
                f"{beside['cpu_ratio']:.2f}" if beside else "",
                f"{beside['beyond_ms']:+.2f}" if beside else "",
                row.get("embedding_calls", ""),
            ]
        )
    head = [
        "operation",
        "at one time",
        "p50 ms",
        "p95",
        "p99",
        "per s",
        "API CPU s/1,000",
        "Redis CPU",
        "CPU / ((a)+(b))",
        "p50 beyond (a)+(b)",
        "embedding calls",
    ]
    return "### Operations and their limits\n\n" + table(head, rows)


def _growth(result: dict[str, Any]) -> str:
    names = ("search", "prompt")
    first = min((row["concurrency"] for row in result["operations"]), default=1)
    stores = {store["memories"]: store for store in result["stores"]}
    rows: list[list[object]] = []
    for memories, store in sorted(stores.items()):
        of_size = {r["operation"]: r for r in result["operations"] if r["memories"] == memories and r["concurrency"] == first}
        times = [f"{of_size[name]['p50_ms']:.2f} / {of_size[name]['p95_ms']:.2f}" if name in of_size else "" for name in names]
        rows.append([f"{memories:,}", *times, f"{store['bytes_per_memory']:,}"])
    return "### Growth: p50 / p95 in ms, one request at a time\n\n" + table(["memories", *names, "bytes per memory"], rows)


_HOW = {"quota": ", each limited to a quarter of a core", "cpu": ", each given 40 per s"}


def _others(result: dict[str, Any]) -> str:
    sizes, pipe, two = (result.get(part) or {} for part in ("sizes", "pipeline", "two"))
    rows: list[list[object]] = []
    if "searchable_ms" in pipe:
        rows.append(["from append to searchable, p50 / p95 / p99 ms", " / ".join(f"{v:.0f}" for v in pipe["searchable_ms"].values())])
    for n, worked in pipe.get("workers", {}).items():
        rows.append([f"messages promoted and embedded per s, {n} worker(s)", worked["memories_per_second"]])
    for n in ("1", "2"):
        if n in two:
            rows.append([f"chat turns per s, {n} API process(es){_HOW.get(two.get('how', ''), '')}", f"{two[n]['per_second']:.0f}"])
            cpu = f"{_cpu(two[n], 'api'):.2f} / {_cpu(two[n], 'redis'):.2f}"
            rows.append([f"API / Redis CPU s per 1,000 of them, {n} API process(es)", cpu])
    if "rounds" in two:
        rows.append(["2 API processes compared to one, by round", " ".join(f"{ratio:.2f}" for ratio in two["rounds"])])
        rows.append(["the same by their CPU per turn", f"{two['ratio_by_cpu']:.2f}"])
    if sizes:
        rows.append(["`agent-memory --help`, s", sizes["help_seconds"]])
        rows.append(["import of the API, s", sizes["import_seconds"]])
        rows.append(["`agent-memory serve` ready (second start), s", sizes.get("serve_seconds", "")])
        rows.append(["installed without engine and local model, MB", f"{sizes['installed_bytes'] / 1e6:.0f}"])
    for r in result.get("local", []):
        rows.append([f"local model: {r['operation']} x{r['concurrency']}, p50 / p95 ms", f"{r['p50_ms']:.1f} / {r['p95_ms']:.1f}"])
    return "### Everything else\n\n" + table(["what", "figure"], rows)


def compare(before: dict[str, Any], after: dict[str, Any]) -> str:
    """Compare CPU usage and medians for all operations that are in both runs."""
    old = {(r["operation"], r["memories"], r["concurrency"]): r for r in before["operations"]}
    rows: list[list[object]] = []
    for row in after["operations"]:
        earlier = old.get((row["operation"], row["memories"], row["concurrency"]))
        if earlier is None:
            continue
        was, now = _cpu(earlier, "api"), _cpu(row, "api")
        rows.append(
            [
                f"{row['operation']}, {row['memories']:,}, x{row['concurrency']}",
                f"{was:.2f}",
                f"{now:.2f}",
                f"{(now / was - 1) * 100:+.0f} %" if was else "",
                f"{earlier['p50_ms']:.2f}",
                f"{row['p50_ms']:.2f}",
                f"{(row['p50_ms'] / earlier['p50_ms'] - 1) * 100:+.0f} %",
            ]
        )
    return table(["operation, memories, at one time", "CPU before", "CPU after", "", "p50 before", "p50 after", ""], rows) + "\n"
