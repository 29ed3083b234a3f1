"""Run each limit in its own process: (a) a bare endpoint and (b) bare Redis commands."""

from __future__ import annotations

import asyncio
import json
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import redis.asyncio

from benchmarks.measurement.meter import Meter, figures
from benchmarks.measurement.series import measure
from benchmarks.scenarios import Operation
from benchmarks.setup.http import connect
from benchmarks.setup.preload import PER_USER
from benchmarks.setup.stack import Process, Stack, child_environment, free_port

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
"""The Redis commands that each operation needs, as a method of `redis_limit.Limit`."""


@dataclass(frozen=True, slots=True)
class Bare:
    """Limit (a): an application that parses requests and returns canned responses."""

    base: str
    meter: Meter

    async def measure(self, operation: Operation, **series: Any) -> dict[str, Any]:
        """Measure a series of requests for an operation. Pass the arguments of `series.measure`."""
        return {"limit": "bare", "operation": operation.name, **await measure(self.base, operation, self.meter, **series)}


@dataclass(frozen=True, slots=True)
class Raw:
    """Limit (b): an operation's Redis commands, sent by `redis_limit`."""

    child: asyncio.subprocess.Process

    async def measure(self, operation: Operation, **series: Any) -> dict[str, Any]:
        """Measure a series of commands for an operation.

        Pass the arguments of `series.measure`. Raises RuntimeError if the process has ended.
        """
        used = await self.ask({"commands": LIMITS[operation.name], **series})
        row = figures(used["seconds"], used["wall"], {"redis-py": used["cpu"]}, 0.0)
        return {"limit": "redis", "operation": operation.name, **row, "seconds": used["seconds"]}

    async def ask(self, job: dict[str, Any]) -> dict[str, Any]:
        """Send a line to the process and return its response."""
        assert self.child.stdin is not None
        assert self.child.stdout is not None
        self.child.stdin.write(json.dumps(job).encode() + b"\n")
        line = await self.child.stdout.readline()
        if not line:
            raise RuntimeError("the process of limit (b) has ended: its log is beside the benchmark's")
        return json.loads(line)


@asynccontextmanager
async def bare(stack: Stack, answers: Mapping[str, Any]) -> AsyncGenerator[Bare, None]:
    """Start limit (a), which returns the given response for each operation."""
    file = stack.folder / "answers.json"
    file.write_text(json.dumps(answers))
    port = free_port()
    process = Process("bare", [sys.executable, "-m", "benchmarks.limits.bare", str(port), str(file)], stack.folder, child_environment())
    try:
        await _listening(f"http://127.0.0.1:{port}")
        yield Bare(f"http://127.0.0.1:{port}", Meter({"bare": [process.pid]}))
    finally:
        process.end()


async def _listening(base: str) -> None:
    for _ in range(1500):
        try:
            (await connect(base)).close()
            return
        except OSError:
            await asyncio.sleep(0.02)
    raise RuntimeError("the bare server did not start")


@asynccontextmanager
async def raw(stack: Stack, memories: int) -> AsyncGenerator[Raw, None]:
    """Start limit (b) on the server's store, which contains `memories` memories."""
    with (stack.folder / "redis_limit.log").open("wb") as log:
        command = [sys.executable, "-m", "benchmarks.limits.redis_limit"]
        child = await asyncio.create_subprocess_exec(
            *command, cwd=stack.folder, env=child_environment(), stdin=PIPE, stdout=PIPE, stderr=log, limit=2**24
        )
    try:
        made = Raw(child)
        await made.ask(await _store(stack, memories))
        yield made
    finally:
        if child.returncode is None:
            child.kill()
        await child.wait()


async def _store(stack: Stack, memories: int) -> dict[str, Any]:
    client = redis.asyncio.Redis.from_url(stack.redis_url, decode_responses=True)
    names = await client.execute_command("FT._LIST")
    vectors = next(name for name in names if ":ix:v" in name)  # pyright: ignore[reportOptionalIterable]
    info = await client.execute_command("FT.INFO", vectors)
    await client.aclose()
    return {
        "url": stack.redis_url,
        "words": next(name for name in names if ":ix:m" in name),  # pyright: ignore[reportOptionalIterable]
        "vectors": vectors,
        "field": next(row["identifier"] for row in info["attributes"] if row["type"] == "VECTOR"),  # pyright: ignore[reportOptionalSubscript]
        "users": memories // PER_USER,
    }
