"""Compare the chat turns per second of two API processes with those of one.

Throughput is meaningful only if the API is the bottleneck, which needs enough cores for all
processes. With fewer cores, the kernel limits each API process to a quarter of a core, which leaves
enough CPU time for everything else. If the kernel cannot do this, all processes get the same low
request rate, and the CPU time per turn is compared.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.measurement.attempts import Attempts
from benchmarks.measurement.meter import Meter, figures
from benchmarks.measurement.quota import limited
from benchmarks.measurement.rounds import joined
from benchmarks.scenarios import Scenarios
from benchmarks.setup.http import connect
from benchmarks.setup.preload import preload
from benchmarks.setup.stack import running

_MEMORIES = 2000
_ROUNDS = 8
_SECONDS = 1.25
# Concurrent conversations per process, and turns per conversation.
_CLIENTS, _TURNS = 8, 10
# Questions repeat after this many conversations. By then, each process has cached their vectors.
_DIFFERENT = 100
_SHARE = 0.25
# Chat turns per second for each process if there is no quota.
_RATE = 40.0
# Cores for two APIs, Redis, the embedding server, the generator and the rest of the system.
_CORES = 6

Turn = tuple[bytes, bytes]


async def measure(folder: Path, tries: Attempts, say: Callable[[str], None]) -> dict[str, Any] | None:
    """Compare one and two processes. Return the method (`how`), the `ratio` and the figures.

    `how` is "cores", "quota" or "cpu". The result includes the ratio for each round.
    """
    result = await tries.of("chat turns through one and two API processes", partial(_apis, folder))
    if result is not None:
        say(f"2 API processes do {result['ratio']:.2f} times the chat turns of one ({result['how']})")
    return result


async def _apis(folder: Path) -> dict[str, Any]:
    shutil.rmtree(folder, ignore_errors=True)
    async with running(folder, apis=2, workers=0) as stack:
        await preload(stack.redis_url, stack.environment, 0, _MEMORIES)
        scenarios, meter = Scenarios("two", _MEMORIES), Meter(stack.pids)
        conversations = itertools.chain.from_iterable(scenarios.chat([number], _TURNS) for number in itertools.count())
        turns = partial(_turns, conversations=conversations, meter=meter)
        for one in stack.apis:
            await _warm(one, conversations)
        if _cores() >= _CORES:
            return await _rounds(turns, stack.apis, "cores")
        with limited(stack.pids["api"], _SHARE) as is_limited:
            await turns(stack.apis)
            return await _rounds(turns, stack.apis, "quota") if is_limited else await _rounds(partial(turns, rate=_RATE), stack.apis, "cpu")


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


async def _rounds(turns: Callable[..., Any], apis: Sequence[str], how: str) -> dict[str, Any]:
    rows: list[dict[str, Any]] = []
    for number in range(_ROUNDS):
        # Alternate which comes first, one process or two. Also alternate which process runs alone.
        for some in [[apis[number % 2]], apis][:: 1 if number % 2 else -1]:
            rows.append({"processes": len(some), **await turns(some)})
    return {"how": how, **ratios(rows, how), **{str(row["processes"]): row for row in joined(rows, ("processes",))}}


def ratios(rows: Sequence[dict[str, Any]], how: str) -> dict[str, Any]:
    """Return the median ratio of two processes to one over all rounds.

    If CPU time per turn is compared, the ratio is 2 x (CPU of one / CPU of two), which estimates
    the throughput on two full cores. Each round has one row per process count.
    """
    one, two = ([row for row in rows if row["processes"] == processes] for processes in (1, 2))
    by_cpu = [2 * a["cpu_per_1000"]["api"] / b["cpu_per_1000"]["api"] for a, b in zip(one, two, strict=True)]
    by_time = [b["per_second"] / a["per_second"] for a, b in zip(one, two, strict=True)]
    chosen_ratios = by_cpu if how == "cpu" else by_time
    return {
        "ratio": round(median(chosen_ratios), 3),
        "rounds": [round(ratio, 3) for ratio in chosen_ratios],
        "ratio_by_cpu": round(median(by_cpu), 3),
    }


async def _warm(api: str, conversations: Iterator[list[Turn]]) -> None:
    some = itertools.islice(conversations, _DIFFERENT)

    async def client() -> None:
        with contextlib.closing(await connect(api)) as connection:
            for prompt, append in itertools.chain.from_iterable(some):
                await connection.expect(append)
                await connection.expect(prompt)

    await asyncio.gather(*(client() for _ in range(_CLIENTS)))


async def _turns(apis: Sequence[str], *, conversations: Iterator[list[Turn]], meter: Meter, rate: float | None = None) -> dict[str, Any]:
    """Run chat turns for a fixed time.

    Each client starts its next turn after a response, or at `rate` turns per second for each
    process.
    """
    seconds: list[float] = []
    count = _CLIENTS * len(apis)
    gap = 0.0 if rate is None else _CLIENTS / rate
    began = time.perf_counter()

    async def client(number: int) -> None:
        connection = await connect(apis[number % len(apis)])
        due = began + gap * number / count
        with contextlib.closing(connection):
            for conversation in conversations:
                for prompt, append in conversation:
                    await asyncio.sleep(max(due - time.perf_counter(), 0.0) if gap else 0.0)
                    due += gap
                    started = time.perf_counter()
                    if started - began >= _SECONDS:
                        return
                    await connection.expect(append)
                    await connection.expect(prompt)
                    seconds.append(time.perf_counter() - started)

    meter.start()
    await asyncio.gather(*(client(number) for number in range(count)))
    used = meter.stop()
    return {**figures(seconds, used.wall, dict(used.cpu), used.foreign), "seconds": seconds}
