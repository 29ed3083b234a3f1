"""Change the embedding model of a used store, with kills: `python -m benchmarks.reembed --memories 50000`.

One caller searches and another one writes during the whole change. The worker is killed every few seconds. The command
prints the failed requests, the memories without a vector of the new model, and the seconds.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any, cast

import httpx
import redis.asyncio

from benchmarks.setup import corpus
from benchmarks.setup.preload import PER_USER, preload
from benchmarks.setup.stack import COMMAND, Process, Stack, running

_KILL_SECONDS = 20.0
_MODEL = "text-embedding-other"


class Callers:
    """Search and write until cancelled, and count answers and failures."""

    def __init__(self, http: httpx.AsyncClient, memories: int) -> None:
        self.counts: Counter[str] = Counter()
        self.written: list[str] = []
        self._http = http
        self._users = memories // PER_USER

    async def _send(self, kind: str, path: str, body: dict[str, Any]) -> bool:
        try:
            status = (await self._http.post(path, json=body)).status_code
        except httpx.HTTPError as error:
            status = type(error).__name__
        self.counts[kind if status == 200 else f"{kind} failed: {status}"] += 1
        return status == 200

    async def search(self) -> None:
        for number in range(1 << 30):
            owner = number % self._users
            body = {"text": corpus.question(owner, number % PER_USER, str(number)), "user_id": {"eq": corpus.user(owner)}, "limit": 5}
            await self._send("search", "/v1/long-term-memory/search", body)
            await asyncio.sleep(0.02)

    async def write(self) -> None:
        for number in range(1 << 30):
            memory = {"id": f"new-{number}", "text": f"{corpus.fact(number, 1)} {number}", "user_id": corpus.user(number % self._users)}
            if await self._send("write", "/v1/long-term-memory/", {"memories": [{**memory, "memory_type": "semantic"}]}):
                self.written.append(memory["id"])
            await asyncio.sleep(0.05)


async def _kill(stack: Stack, started: list[Process]) -> None:
    pid = stack.pids["worker"][0]
    while True:
        await asyncio.sleep(_KILL_SECONDS)
        os.kill(pid, signal.SIGKILL)
        environment = {**stack.environment, "LOG_LEVEL": "INFO"}
        process = await asyncio.to_thread(Process, f"again-{len(started)}", [*COMMAND, "worker"], stack.folder, environment)
        started.append(process)
        pid = process.pid
        await process.wait_for_output(r"(worker ready)")


async def _reach(http: httpx.AsyncClient, phase: str) -> dict[str, Any]:
    while (status := (await http.get("/v1/reembed")).json())["phase"] != phase:
        print(json.dumps(status), flush=True)
        await asyncio.sleep(5)
    return status


async def _rest(http: httpx.AsyncClient) -> None:
    """Wait until no background work is pending."""
    pending = True
    while pending:
        await asyncio.sleep(1)
        pending = any(work["pending"] for work in (await http.get("/v1/ready")).json()["checks"]["work"].values())


async def _lost(url: str, written: list[str]) -> dict[str, int]:
    """Count memories without exactly one vector, and vectors of each model."""
    client = redis.asyncio.Redis.from_url(url)
    counts: Counter[str] = Counter(written=len(written))
    async for key in client.scan_iter(match="am:{0}:m:*", count=1000):
        fields = cast("list[bytes]", await client.hkeys(key.replace(b":m:", b":v:")))
        vectors = [name.decode() for name in fields if name.startswith(b"v_")]
        counts.update(memories=1, lost=len(vectors) != 1, **dict.fromkeys(vectors, 1))
    await client.aclose()
    return dict(counts)


async def _run(memories: int, folder: Path) -> None:
    async with running(folder) as stack, httpx.AsyncClient(base_url=stack.apis[0], timeout=60) as http:
        filled = await preload(stack.redis_url, dict(stack.environment), 0, memories)
        print(f"{memories} memories in {filled.seconds:.0f} s", flush=True)
        callers, started = Callers(http, memories), list[Process]()
        began = time.monotonic()
        tasks = [asyncio.create_task(work) for work in (callers.search(), callers.write(), _kill(stack, started))]
        try:
            (await http.post("/v1/reembed", json={"model": _MODEL, "dimensions": 384})).raise_for_status()
            await _reach(http, "swapped")
            swapped = time.monotonic() - began
            (await http.post("/v1/reembed/confirm")).raise_for_status()
            await _reach(http, "none")
        finally:
            for task in tasks:
                task.cancel()
            results = await asyncio.gather(*tasks, return_exceptions=True)
        print("callers ended:", *{type(result).__name__ for result in results})
        await _rest(http)
        print(f"swapped after {swapped:.0f} s, over after {time.monotonic() - began:.0f} s, {len(started)} kills of the worker")
        print(dict(callers.counts), await _lost(stack.redis_url, callers.written))
        for process in started:
            await asyncio.to_thread(process.end)


def main() -> None:
    """Read the arguments and run the benchmark."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reembed", description=__doc__)
    parser.add_argument("--memories", type=int, default=50_000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_run(arguments.memories, Path(folder)))


if __name__ == "__main__":
    main()
