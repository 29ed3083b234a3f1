"""Compare two checkouts of the server: `python -m benchmarks versions BEFORE [AFTER]`.

Each checkout has its own store. Both run at the same time, and their series alternate to even out
changes in the machine's speed. The result is the median ratio over all pairs of series, with its
upper bound. Each question is asked once.
"""

from __future__ import annotations

import json
import math
import shutil
import tempfile
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.measurement.meter import Meter
from benchmarks.measurement.series import measure
from benchmarks.reports.report import table
from benchmarks.scenarios import Operation, Scenarios
from benchmarks.setup.http import connect, request
from benchmarks.setup.preload import memory
from benchmarks.setup.stack import Stack, running

Say = Callable[[str], None]

OPERATIONS = ("put 4", "append to 100", "create 20", "search, new query", "prompt, new query")
TOGETHER = "all together"
_CREATED_AT_ONCE = 100
_FIGURES = ("cpu", "p50")


@dataclass(frozen=True)
class Plan:
    """The size of a run."""

    memories: int = 10_000
    pairs: int = 9
    requests: int = 160
    concurrency: Sequence[int] = (1, 8)
    operations: Sequence[str] = OPERATIONS


@dataclass(frozen=True, slots=True)
class _Version:
    stack: Stack
    meter: Meter
    operations: Sequence[Operation]


async def compare(before: Path, after: Path, plan: Plan, say: Say) -> list[dict[str, Any]]:
    """Return a row for each operation and concurrency.

    A row contains both figures and the median ratio with its upper bound. Each checkout
    must have its own environment (`make dev`). Raises RuntimeError if a server does not start.
    """
    folder = Path(tempfile.mkdtemp(prefix="agent-memory-versions-"))
    try:
        async with AsyncExitStack() as beside:
            versions: list[_Version] = []
            for name, checkout in (("before", before), ("after", after)):
                say(f"{name}: {checkout}: {plan.memories:,} memories")
                stack = await beside.enter_async_context(_filled(folder / name, checkout, plan.memories))
                versions.append(await _ready(stack, plan))
            return await _pairs(versions, plan, say)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _filled(folder: Path, checkout: Path, memories: int) -> Any:
    command = [str(checkout.resolve() / ".venv" / "bin" / "agent-memory")]
    return running(folder, workers=0, command=command, fill=lambda base: _fill(base, memories))


async def _fill(base: str, memories: int) -> None:
    """Create memories over HTTP, which every version supports, and wait for their vectors."""
    connection = await connect(base)
    for first in range(0, memories, _CREATED_AT_ONCE):
        batch = [memory(number).model_dump(mode="json", exclude_unset=True) for number in range(first, first + _CREATED_AT_ONCE)]
        body = json.dumps({"memories": batch, "deduplicate": False}).encode()
        last = first + _CREATED_AT_ONCE >= memories
        await connection.expect(request("POST", f"/v1/long-term-memory/{'?wait=20' if last else ''}", body))
    connection.close()


async def _ready(stack: Stack, plan: Plan) -> _Version:
    scenarios = Scenarios("v", plan.memories)
    await scenarios.prepare(stack.apis[0])
    chosen = [operation for operation in scenarios.operations() if operation.name in plan.operations]
    return _Version(stack, Meter(stack.pids), chosen)


async def _pairs(versions: Sequence[_Version], plan: Plan, say: Say) -> list[dict[str, Any]]:
    figures: dict[tuple[str, int], list[list[dict[str, float]]]] = {}
    for concurrency in plan.concurrency:
        offset = 0
        for pair in range(plan.pairs):
            for index, operation in enumerate(versions[0].operations):
                warm = min(operation.warm, 10) if pair else operation.warm
                series = {"requests": plan.requests, "concurrency": concurrency, "offset": offset + (concurrency << 24), "warm": warm}
                rows: list[dict[str, float]] = [{}, {}]
                # The order alternates from pair to pair.
                for turn in (0, 1) if (pair + index) % 2 == 0 else (1, 0):
                    version = versions[turn]
                    measured = await measure(version.stack.apis[0], version.operations[index], version.meter, **series)  # pyright: ignore[reportArgumentType]
                    rows[turn] = {"cpu": measured["cpu_per_1000"]["api"], "p50": measured["p50_ms"]}
                figures.setdefault((operation.name, concurrency), []).append(rows)
            offset += plan.requests + 200
            say(f"pair {pair + 1} of {plan.pairs} at {concurrency} at a time")
        figures[TOGETHER, concurrency] = _together([figures[name, concurrency] for name, many in figures if many == concurrency])
    return [row(name, concurrency, pairs) for (name, concurrency), pairs in figures.items()]


def _together(operations: Sequence[Sequence[Sequence[dict[str, float]]]]) -> list[list[dict[str, float]]]:
    """Return each pair's geometric mean over all operations, so that each has the same weight."""
    return [
        [{figure: math.exp(math.fsum(math.log(rows[turn][figure]) for rows in pair) / len(pair)) for figure in _FIGURES} for turn in (0, 1)]
        for pair in zip(*operations, strict=True)
    ]


def row(name: str, concurrency: int, pairs: Sequence[Sequence[dict[str, float]]]) -> dict[str, Any]:
    """Return an operation's figures: the medians of both versions, and their median ratio."""
    result: dict[str, Any] = {"operation": name, "concurrency": concurrency, "pairs": len(pairs)}
    for figure in _FIGURES:
        ratios = [after[figure] / before[figure] for before, after in pairs]
        result[figure] = {
            "before": median(before[figure] for before, _ in pairs),
            "after": median(after[figure] for _, after in pairs),
            "ratio": median(ratios),
            "upper": upper_bound(ratios),
        }
    return result


def upper_bound(values: Sequence[float], confidence: float = 0.95) -> float:
    """Return the one-sided upper confidence bound of the median.

    It is an order statistic based on the binomial distribution. Return infinity if there are too
    few values for `confidence`. Source: Conover, "Practical Nonparametric Statistics", 3rd edition,
    3.2.
    """
    count = len(values)
    above = 0.0
    for rank in range(count, 0, -1):
        above += math.comb(count, rank) / 2**count
        if above > 1 - confidence:
            return sorted(values)[rank] if rank < count else math.inf
    return math.inf


def markdown(rows: Sequence[dict[str, Any]], before: str = "before", after: str = "after") -> str:
    """Format the rows as a table with the names of both sides in the header."""
    head = [
        "operation",
        "at one time",
        f"CPU s/1,000 {before}",
        after,
        "ratio",
        "95 % bound",
        f"p50 ms {before}",
        after,
        "ratio",
        "95 % bound",
    ]
    cells = [
        [
            each["operation"],
            each["concurrency"],
            *(f"{each[figure][part]:.2f}" for figure in _FIGURES for part in ("before", "after", "ratio", "upper")),
        ]
        for each in rows
    ]
    return table(head, cells)
