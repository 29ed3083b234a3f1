"""Start the processes, fill the store, and measure limits and operations."""

from __future__ import annotations

import asyncio
import json
import math
import shutil
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import redis.asyncio

from benchmarks import pipeline, sizes, two
from benchmarks.limits.processes import Bare, Raw, bare, raw
from benchmarks.measurement.attempts import Attempts
from benchmarks.measurement.meter import Meter, figures
from benchmarks.measurement.rounds import count, joined
from benchmarks.measurement.series import measure
from benchmarks.scenarios import Operation, Scenarios
from benchmarks.setup.http import connect, request
from benchmarks.setup.preload import preload
from benchmarks.setup.stack import Stack, running

Say = Callable[[str], None]
# The number of requests that warm up an operation in each later round.
_WARM_AGAIN = 10

PARTS = frozenset({"sizes", "stores", "pipeline", "two", "local"})
"""The parts of a run. "stores" measures the operations beside their limits, for each size of the store."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Settings that determine how much a run measures."""

    memories: Sequence[int] = (1_000, 10_000, 100_000)
    concurrency: Sequence[int] = (1, 8, 32)
    requests: int = 800
    turns: int = 400
    parts: frozenset[str] = PARTS
    minutes: float = 30.0
    """After this many minutes, start nothing new, and report the skipped parts."""


async def run(plan: Plan, say: Say) -> dict[str, Any]:
    """Run everything and return the results. `failures` lists the parts that failed."""
    folder = Path(tempfile.mkdtemp(prefix="agent-memory-bench-"))
    tries = Attempts(say, plan.minutes * 60)
    result: dict[str, Any] = {"operations": [], "limits": [], "stores": [], "failures": tries.failures}
    try:
        if "sizes" in plan.parts:
            result["sizes"] = await tries.of("start-up and sizes", lambda: asyncio.to_thread(sizes.measure, folder))
        if "stores" in plan.parts:
            await tries.of("the stores", lambda: _stores(folder / "look-alike", plan, result, tries, say), most_seconds=plan.minutes * 60)
        if "pipeline" in plan.parts:
            result["pipeline"] = await pipeline.measure(folder / "pipeline", tries, say)
        if "two" in plan.parts:
            result["two"] = await two.measure(folder / "two", tries, say)
        if "local" in plan.parts:
            result["local"] = await tries.of("the local model", lambda: _local(folder / "local", plan, say), most_seconds=300)
        return {name: value for name, value in result.items() if value is not None}
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def _stores(folder: Path, plan: Plan, result: dict[str, Any], tries: Attempts, say: Say) -> None:
    result["operations"].clear()
    result["limits"].clear()
    result["stores"].clear()
    shutil.rmtree(folder, ignore_errors=True)
    async with running(folder, workers=0) as stack:
        filled, of_memories = 0, 0
        for memories in plan.memories:
            say(f"filling the store up to {memories:,} memories")
            took = await preload(stack.redis_url, stack.environment, filled, memories)
            of_memories += took.redis_bytes
            result["stores"].append(await _store(stack, memories, of_memories, (memories - filled) / took.seconds))
            filled = memories
            # Operations that do not depend on the store's size are measured only once, at about 10,000 memories.
            whole = memories == min(plan.memories, key=lambda count: abs(math.log10(count) - 4))
            await _operations(stack, plan, memories, result, tries, say, whole=whole)


async def _store(stack: Stack, memories: int, of_memories: int, rate: float) -> dict[str, Any]:
    """Return the figures for one store size.

    `redis_bytes` is all memory that Redis uses, including data left by requests to smaller stores.
    `bytes_per_memory` excludes that data.
    """
    client = redis.asyncio.Redis.from_url(stack.redis_url)
    used = int((await client.info("memory"))["used_memory"])
    await client.aclose()
    return {"memories": memories, "redis_bytes": used, "bytes_per_memory": round(of_memories / memories), "filled_per_second": round(rate)}


async def _operations(stack: Stack, plan: Plan, memories: int, result: dict[str, Any], tries: Attempts, say: Say, *, whole: bool) -> None:
    scenarios = Scenarios(f"b{memories}", memories)
    await scenarios.prepare(stack.apis[0])
    meter = Meter(stack.pids)
    operations = scenarios.operations() if whole else scenarios.recalls()
    async with AsyncExitStack() as beside:
        limits: list[Bare | Raw] = []
        if whole:
            limits.append(await beside.enter_async_context(bare(stack, await _answers(stack, operations))))
            limits.append(await beside.enter_async_context(raw(stack, memories)))
        await _series(partial(_row, stack, meter, memories), limits, operations, plan, result, tries, say)
    for concurrency in plan.concurrency if whole else ():
        chat = partial(_chat, stack.apis, scenarios, meter, turns=plan.turns, concurrency=concurrency)
        row = await tries.of(f"chat turn x{concurrency}", chat)
        if row is not None:
            result["operations"].append({"operation": "chat turn", "memories": memories, "concurrency": concurrency, **row})
            say(_line(result["operations"][-1]))


async def _series(
    ours: Callable[..., Awaitable[dict[str, Any]]],
    limits: Sequence[Bare | Raw],
    operations: Sequence[Operation],
    plan: Plan,
    result: dict[str, Any],
    tries: Attempts,
    say: Say,
) -> None:
    """Measure all operations in short rounds at each concurrency.

    Measure each operation just before or after its limits.
    """
    numbers = dict.fromkeys(operations, 0)
    for concurrency in plan.concurrency:
        rounds, rows = count(plan.requests, concurrency), list[dict[str, Any]]()
        for turn in range(rounds):
            for operation in operations[:: -1 if turn % 2 else 1]:
                # Caches that were filled in the first round are still filled later.
                warm = min(operation.warm, _WARM_AGAIN) if numbers[operation] else operation.warm
                series = {"requests": plan.requests // rounds, "concurrency": concurrency, "offset": numbers[operation], "warm": warm}
                numbers[operation] += series["requests"] + warm
                # Reverse the order of limits and operation in every other round, as with the operations.
                for work in [*(limit.measure for limit in limits), ours][:: -1 if turn % 2 else 1]:
                    row = await tries.of(f"{operation.name} x{concurrency}", partial(work, operation, **series))
                    if row is not None:
                        rows.append({"concurrency": concurrency, "limit": None, **row})
        for row in joined(rows, ("limit", "operation", "concurrency")):
            if row["limit"] is not None:
                result["limits"].append(row)
            else:
                del row["limit"]
                result["operations"].append(row)
                say(_line(row))


async def _row(stack: Stack, meter: Meter, memories: int, operation: Operation, **series: Any) -> dict[str, Any]:
    before = 0

    async def warmed() -> None:
        nonlocal before
        before = await _calls(stack)

    row = await measure(stack.apis[0], operation, meter, **series, warmed=warmed)
    return {"operation": operation.name, "memories": memories, **row, "embedding_calls": await _calls(stack) - before, "rss": meter.rss()}


def _line(row: dict[str, Any]) -> str:
    times = f"p50 {row['p50_ms']:8.2f} ms  p95 {row['p95_ms']:8.2f} ms"
    return f"{row['memories']:>9,} memories  {row['operation']:<22} x{row['concurrency']:<3} {times}"


async def _calls(stack: Stack) -> int:
    connection = await connect(stack.model)
    count = json.loads(await connection.expect(request("GET", "/calls")))["calls"]
    connection.close()
    return int(count)


async def _answers(stack: Stack, operations: Sequence[Operation]) -> dict[str, Any]:
    connection = await connect(stack.apis[0])
    answers = {operation.name: json.loads(await connection.expect(operation.nth(0))) for operation in operations}
    connection.close()
    return answers


async def _chat(apis: Sequence[str], scenarios: Scenarios, meter: Meter, *, turns: int, concurrency: int) -> dict[str, Any]:
    """Measure chat turns in many sessions at once. Each time covers a prompt and an append."""
    each = 10
    conversations = iter(scenarios.chat(range(concurrency * 1000, concurrency * 1000 + max(turns // each, concurrency)), each))
    seconds: list[float] = []

    async def work(number: int) -> None:
        connection = await connect(apis[number % len(apis)])
        for conversation in conversations:
            for prompt, append in conversation:
                began = time.perf_counter()
                await connection.expect(append)
                await connection.expect(prompt)
                seconds.append(time.perf_counter() - began)
        connection.close()

    meter.start()
    await asyncio.gather(*(work(number) for number in range(concurrency)))
    used = meter.stop()
    return figures(seconds, used.wall, dict(used.cpu), used.foreign)


async def _local(folder: Path, plan: Plan, say: Say) -> list[dict[str, Any]]:
    """Measure searches with the in-process model, with cached and new queries."""
    rows: list[dict[str, Any]] = []
    shutil.rmtree(folder, ignore_errors=True)
    async with running(folder, local=True, workers=1) as stack:
        scenarios = Scenarios("local", 1000)
        await scenarios.prepare(stack.apis[0])
        meter = Meter(stack.pids)
        for operation in scenarios.recalls():
            for concurrency in plan.concurrency:
                series: dict[str, Any] = {
                    "requests": plan.requests // 4,
                    "concurrency": concurrency,
                    "offset": concurrency * 10**5,
                    "warm": operation.warm,
                }
                rows.append(
                    {"operation": operation.name, "concurrency": concurrency, **await measure(stack.apis[0], operation, meter, **series)}
                )
        say("the local model is measured")
    return joined(rows, ("operation", "concurrency"))
