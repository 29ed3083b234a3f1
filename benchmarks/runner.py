"""One run: the stack is started and filled, the limits and our operations are measured in turn, every figure lands in one dictionary."""

from __future__ import annotations

import asyncio
import json
import math
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import redis.asyncio

from benchmarks import pipeline, sizes, two
from benchmarks.attempts import Attempts
from benchmarks.http import connect, request
from benchmarks.meter import Meter, figures
from benchmarks.preload import PER_USER, preload
from benchmarks.rounds import ROUNDS, joined
from benchmarks.scenarios import Operation, Scenarios
from benchmarks.stack import Process, Stack, child_environment, free_port, running

Say = Callable[[str], None]
# Which limit belongs to which operation: (name of the Redis limit, operation whose bare endpoint it is).
LIMITS = {
    "put 4": "put",
    **{f"append to {n}": "append" for n in (10, 100, 1000)},
    **{f"get last 20 of {n}": "get" for n in (10, 100, 1000)},
    "create 20": "create",
    "search": "search",
    "search, new query": "search",
    "prompt": "prompt",
    "prompt, new query": "prompt",
}


# Requests of an operation before each later round of it.
_WARM_AGAIN = 10

PARTS = frozenset({"sizes", "stores", "pipeline", "two", "local"})
"""What a run consists of; "stores" are the operations beside their limits, over each size of the store."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is measured."""

    memories: Sequence[int] = (1_000, 10_000, 100_000)
    concurrency: Sequence[int] = (1, 8, 32)
    requests: int = 500
    turns: int = 400
    parts: frozenset[str] = PARTS
    minutes: float = 30.0
    """After so long nothing new is begun; what was left out is said."""


async def measure(
    base: str,
    operation: Operation,
    meter: Meter,
    *,
    requests: int,
    concurrency: int,
    offset: int,
    warm: int | None = None,
    warmed: Callable[[], Awaitable[object]] | None = None,
) -> dict[str, Any]:
    """One series over `concurrency` kept connections. `offset` keeps the numbers of its requests apart from other series'; before the part
    that is measured come `warm` requests (as many as the operation asks for), and `warmed` is awaited."""
    connections = [await connect(base) for _ in range(concurrency)]
    for n in range(operation.warm if warm is None else warm):
        await connections[n % concurrency].expect(operation.nth(offset + n))
    if warmed is not None:
        await warmed()
    todo = [operation.nth(offset + operation.warm + n) for n in range(requests)]
    waiting, seconds = iter(todo), list[float]()

    async def work(number: int) -> None:
        for body in waiting:
            began = time.perf_counter()
            await connections[number].expect(body)
            seconds.append(time.perf_counter() - began)

    meter.start()
    await asyncio.gather(*(work(number) for number in range(concurrency)))
    used = meter.stop()
    for connection in connections:
        connection.close()
    return figures(seconds, used.wall, dict(used.cpu), used.foreign)


async def run(plan: Plan, say: Say) -> dict[str, Any]:
    """The whole run; its result is what `report` shows and `compare` reads. What failed stands in its `failures`."""
    folder = Path(tempfile.mkdtemp(prefix="agent-memory-bench-"))
    tries = Attempts(say, plan.minutes * 60)
    found: dict[str, Any] = {"operations": [], "limits": [], "stores": [], "failures": tries.failures}
    try:
        if "sizes" in plan.parts:
            found["sizes"] = await tries.of("start-up and sizes", lambda: asyncio.to_thread(sizes.measure, folder))
        if "stores" in plan.parts:
            await tries.of("the stores", lambda: _stores(folder / "look-alike", plan, found, tries, say), most_seconds=plan.minutes * 60)
        if "pipeline" in plan.parts:
            found["pipeline"] = await pipeline.measure(folder / "pipeline", tries, say)
        if "two" in plan.parts:
            found["two"] = await two.measure(folder / "two", tries, say)
        if "local" in plan.parts:
            found["local"] = await tries.of("the local model", lambda: _local(folder / "local", plan, say), most_seconds=300)
        return {name: value for name, value in found.items() if value is not None}
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def _stores(folder: Path, plan: Plan, found: dict[str, Any], tries: Attempts, say: Say) -> None:
    found["operations"].clear()
    found["limits"].clear()
    found["stores"].clear()
    shutil.rmtree(folder, ignore_errors=True)
    async with running(folder, workers=0) as stack:
        filled, of_memories = 0, 0
        for memories in plan.memories:
            say(f"filling the store up to {memories:,} memories")
            took = await preload(stack.redis_url, stack.environment, filled, memories)
            of_memories += took.redis_bytes
            found["stores"].append(await _store(stack, memories, of_memories, (memories - filled) / took.seconds))
            filled = memories
            # What does not depend on the store is measured once, at 10,000 or what comes next to it.
            whole = memories == min(plan.memories, key=lambda count: abs(math.log10(count) - 4))
            await _operations(stack, plan, memories, found, tries, say, whole=whole)


async def _store(stack: Stack, memories: int, of_memories: int, rate: float) -> dict[str, Any]:
    """`redis_bytes` is all that Redis holds, with what the requests on smaller stores have written; the bytes per memory are without."""
    client = redis.asyncio.Redis.from_url(stack.redis_url)
    used = int((await client.info("memory"))["used_memory"])
    await client.aclose()
    return {"memories": memories, "redis_bytes": used, "bytes_per_memory": round(of_memories / memories), "filled_per_second": round(rate)}


async def _operations(stack: Stack, plan: Plan, memories: int, found: dict[str, Any], tries: Attempts, say: Say, *, whole: bool) -> None:
    scenarios = Scenarios(f"b{memories}", memories)
    await scenarios.prepare(stack.apis[0])
    meter = Meter(stack.pids)
    operations = scenarios.operations() if whole else scenarios.recalls()
    answers = await _answers(stack, operations)
    rounds = ROUNDS if whole else 1
    part = replace(plan, requests=max(plan.requests // rounds, 1))
    limits, rows = list[dict[str, Any]](), list[dict[str, Any]]()
    for turn in range(rounds):
        if whole and not turn % 2:
            limits += await _limits(stack, part, memories, operations, answers, tries, say)
        for operation in operations:
            for place, concurrency in enumerate(plan.concurrency):
                offset = (turn * len(plan.concurrency) + place + 1) * 10 * plan.requests
                # What was known in the first round is known in the others.
                warm = min(operation.warm, _WARM_AGAIN) if turn else operation.warm
                work = partial(_row, stack, operation, meter, part, memories, concurrency, offset, warm)
                row = await tries.of(f"{operation.name} x{concurrency}, {memories:,} memories", work)
                if row is not None:
                    rows.append(row)
                    say(_line(row))
        # In every other round the limits come last: what the machine does meanwhile is not always to one's favour.
        if whole and turn % 2:
            limits += await _limits(stack, part, memories, operations, answers, tries, say)
    found["limits"] += joined(limits, ("limit", "operation", "concurrency"))
    found["operations"] += joined(rows, ("operation", "memories", "concurrency"))
    for concurrency in plan.concurrency if whole else ():
        chat = partial(_chat, stack.apis, scenarios, meter, turns=plan.turns, concurrency=concurrency)
        row = await tries.of(f"chat turn x{concurrency}", chat)
        if row is not None:
            found["operations"].append({"operation": "chat turn", "memories": memories, "concurrency": concurrency, **row})
            say(_line(found["operations"][-1]))


async def _limits(
    stack: Stack, plan: Plan, memories: int, operations: Sequence[Operation], answers: dict[str, Any], tries: Attempts, say: Say
) -> list[dict[str, Any]]:
    bare = await tries.of("limit (a)", lambda: _bare(stack, plan, operations, answers, say), most_seconds=300) or []
    return bare + (await tries.of("limit (b)", lambda: _redis(stack, plan, memories, say), most_seconds=300) or [])


async def _row(
    stack: Stack, operation: Operation, meter: Meter, plan: Plan, memories: int, concurrency: int, offset: int, warm: int
) -> dict[str, Any]:
    before = 0

    async def warmed() -> None:
        nonlocal before
        before = await _calls(stack)

    series = {"requests": plan.requests, "concurrency": concurrency, "offset": offset, "warm": warm}
    row = await measure(stack.apis[0], operation, meter, **series, warmed=warmed)
    named = {"operation": operation.name, "memories": memories, "concurrency": concurrency}
    return {**named, **row, "embedding_calls": await _calls(stack) - before, "rss": meter.rss()}


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
    """Prompt and append, turn by turn, in many sessions at one time; a time is that of a whole turn."""
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


async def _bare(stack: Stack, plan: Plan, operations: Sequence[Operation], answers: dict[str, Any], say: Say) -> list[dict[str, Any]]:
    file = stack.folder / "answers.json"
    file.write_text(json.dumps(answers))
    port = free_port()
    process = Process("bare", [sys.executable, "-m", "benchmarks.bare", str(port), str(file)], stack.folder, child_environment())
    base, rows = f"http://127.0.0.1:{port}", list[dict[str, Any]]()
    try:
        await _listening(base)
        meter = Meter({"bare": [process.pid]})
        for operation in operations:
            if operation.name.endswith("new query"):
                continue
            for concurrency in plan.concurrency:
                row = await measure(base, operation, meter, requests=plan.requests, concurrency=concurrency, offset=0)
                rows.append({"limit": "bare", "operation": operation.name, "concurrency": concurrency, **row})
        say("limit (a), the bare endpoint, is measured")
    finally:
        process.end()
    return rows


async def _listening(base: str) -> None:
    for _ in range(1500):
        try:
            (await connect(base)).close()
            return
        except OSError:
            await asyncio.sleep(0.02)
    raise RuntimeError("the bare server did not start")


async def _redis(stack: Stack, plan: Plan, memories: int, say: Say) -> list[dict[str, Any]]:
    client = redis.asyncio.Redis.from_url(stack.redis_url, decode_responses=True)
    names = await client.execute_command("FT._LIST")
    words = next(name for name in names if ":ix:m" in name)
    vectors = next(name for name in names if ":ix:v" in name)
    info = await client.execute_command("FT.INFO", vectors)
    await client.aclose()
    field = next(row["identifier"] for row in info["attributes"] if row["type"] == "VECTOR")
    job = {
        "url": stack.redis_url,
        "words": words,
        "vectors": vectors,
        "field": field,
        "users": memories // PER_USER,
        "requests": plan.requests,
        "concurrency": list(plan.concurrency),
    }
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", "benchmarks.redis_limit"],
        input=json.dumps(job).encode(),
        capture_output=True,
        env=child_environment(),
        cwd=stack.folder,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr.decode()[-3000:])
    say("limit (b), the bare Redis commands, is measured")
    return [
        {
            "limit": "redis",
            "operation": row["operation"],
            "concurrency": row["concurrency"],
            **figures(row["seconds"], row["wall"], {"redis-py": row["cpu"]}, 0.0),
        }
        for row in json.loads(done.stdout)
    ]


async def _local(folder: Path, plan: Plan, say: Say) -> list[dict[str, Any]]:
    """Searches with the local model in the API's process, each with a query that it has not seen."""
    rows: list[dict[str, Any]] = []
    shutil.rmtree(folder, ignore_errors=True)
    async with running(folder, local=True, workers=1) as stack:
        scenarios = Scenarios("local", 1000)
        await scenarios.prepare(stack.apis[0])
        meter = Meter(stack.pids)
        for operation in scenarios.recalls():
            for concurrency in plan.concurrency:
                row = await measure(
                    stack.apis[0], operation, meter, requests=plan.requests // 4, concurrency=concurrency, offset=concurrency * 10**5
                )
                rows.append({"operation": operation.name, "concurrency": concurrency, **row})
        say("the local model is measured")
    return rows
