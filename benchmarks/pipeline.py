"""Measure how quickly messages become memories.

The figures are the time from an append until semantic search finds the message, the embedding
calls for 100 memories, and the throughput of workers.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import redis.asyncio

from benchmarks.measurement.attempts import Attempts
from benchmarks.measurement.meter import percentile
from benchmarks.setup import corpus
from benchmarks.setup.http import connect, request
from benchmarks.setup.stack import Stack, running

RATE = 50
_SECONDS = 10
_BACKLOG = 3000
_PATIENCE_SECONDS = 300.0


async def measure(folder: Path, tries: Attempts, say: Callable[[str], None]) -> dict[str, Any]:
    """Measure latency and throughput.

    Append RATE messages per second and wait for each message's vector to be in the index. Then
    process a backlog with one worker and with two.
    """
    result: dict[str, Any] = {"appends_per_second": RATE, "workers": {}}

    async def latency() -> list[float]:
        shutil.rmtree(folder / "latency", ignore_errors=True)
        async with running(folder / "latency", workers=1) as stack:
            return await _latency(stack)

    async def calls() -> int:
        shutil.rmtree(folder / "calls", ignore_errors=True)
        async with running(folder / "calls", workers=1) as stack:
            return await _calls_for_100(stack)

    async def backlog(workers: int) -> float:
        shutil.rmtree(folder / f"backlog-{workers}", ignore_errors=True)
        async with running(folder / f"backlog-{workers}", workers=workers) as stack:
            return await _backlog(stack)

    latencies = await tries.of("from append to searchable", latency)
    if latencies is not None:
        result["appends"] = len(latencies)
        result["searchable_ms"] = {f"p{round(s * 100)}": round(percentile(latencies, s) * 1000, 1) for s in (0.5, 0.95, 0.99)}
        say(f"from append to searchable at {RATE}/s: p95 {result['searchable_ms']['p95']:.0f} ms")
    result["calls_for_100"] = await tries.of("embedding calls for 100 memories", calls)
    for workers in (1, 2):
        rate = await tries.of(f"a backlog, {workers} worker(s)", partial(backlog, workers))
        if rate is not None:
            result["workers"][str(workers)] = {"memories_per_second": round(rate)}
            say(f"{workers} worker(s): {rate:.0f} messages promoted and embedded per second")
    return result


async def _latency(stack: Stack) -> list[float]:
    # redis-py's default pool rejects the 101st simultaneous caller.
    client = redis.asyncio.Redis.from_url(stack.redis_url, max_connections=2 * RATE * _SECONDS)
    index = await _vector_index(client)
    seconds: list[float] = []
    connection = await connect(stack.apis[0])

    async def one(n: int) -> None:
        session, user = f"p-{n % 25}", f"p-user-{n}"
        body = {"messages": [corpus.message(f"p{n}", 0)], "user_id": user}
        began = time.perf_counter()
        async with sending:
            await connection.expect(request("POST", f"/v1/working-memory/{session}-{n}/messages", json.dumps(body).encode()))
        while time.perf_counter() - began < _PATIENCE_SECONDS:
            reply = await client.execute_command("FT.SEARCH", index, f"@u:{{{user.encode().hex()}}}", "LIMIT", 0, 0, "DIALECT", 2)
            if int(_total(reply)):
                seconds.append(time.perf_counter() - began)
                return
            # Poll less often after a while, so that long waits do not slow down the other messages.
            await asyncio.sleep(0.005 if time.perf_counter() - began < 0.25 else 0.05)
        raise RuntimeError(f"message {n} was not found by meaning within {_PATIENCE_SECONDS:.0f} s")

    sending = asyncio.Lock()
    for n in range(-50, 0):
        await one(n)
    seconds.clear()
    began, running_ones = time.perf_counter(), list[asyncio.Task[None]]()
    for n in range(RATE * _SECONDS):
        await asyncio.sleep(max(began + n / RATE - time.perf_counter(), 0))
        running_ones.append(asyncio.create_task(one(n)))
    await asyncio.gather(*running_ones)
    connection.close()
    await client.aclose()
    return seconds


async def _calls_for_100(stack: Stack) -> int:
    """Count the embedding calls for 100 memories created in five requests."""
    client = redis.asyncio.Redis.from_url(stack.redis_url)
    index, user = await _vector_index(client), "c-user"
    connection, model = await connect(stack.apis[0]), await connect(stack.model)
    before = int(json.loads(await model.expect(request("GET", "/calls")))["calls"])
    for batch in range(5):
        memories = [{"id": f"c-{n}", "text": corpus.fact(10**7, n), "user_id": user} for n in range(batch * 20, batch * 20 + 20)]
        await connection.expect(request("POST", "/v1/long-term-memory/", json.dumps({"memories": memories}).encode()))
    began = time.perf_counter()
    while int(_total(await client.execute_command("FT.SEARCH", index, f"@u:{{{user.encode().hex()}}}", "LIMIT", 0, 0, "DIALECT", 2))) < 100:
        if time.perf_counter() - began > _PATIENCE_SECONDS:
            raise RuntimeError("the memories were not embedded")
        await asyncio.sleep(0.02)
    after = int(json.loads(await model.expect(request("GET", "/calls")))["calls"])
    connection.close()
    model.close()
    await client.aclose()
    return after - before


async def _backlog(stack: Stack) -> float:
    """Return how many memories per second the workers create from a backlog of sessions."""
    client = redis.asyncio.Redis.from_url(stack.redis_url)
    index = await _vector_index(client)
    connection = await connect(stack.apis[0])
    began = time.perf_counter()
    for n in range(_BACKLOG // 20):
        body = {"messages": [corpus.message(f"w{n}", k) for k in range(20)], "user_id": f"w-user-{n}"}
        await connection.expect(request("POST", f"/v1/working-memory/w-{n}/messages", json.dumps(body).encode()))
    while int(_total(await client.execute_command("FT.SEARCH", index, "*", "LIMIT", 0, 0))) < _BACKLOG:
        if time.perf_counter() - began > _PATIENCE_SECONDS:
            raise RuntimeError("the workers did not finish the backlog")
        await asyncio.sleep(0.02)
    connection.close()
    await client.aclose()
    return _BACKLOG / (time.perf_counter() - began)


async def _vector_index(client: redis.asyncio.Redis) -> bytes:
    return next(name for name in await client.execute_command("FT._LIST") if b":ix:v" in name)  # pyright: ignore[reportOptionalIterable]


def _total(reply: Any) -> int:
    return reply[b"total_results"] if isinstance(reply, dict) else reply[0]
