"""Change a store's embedding model under load while processes are killed.

    python -m benchmarks.reembed --memories 50000

There are two API processes and two workers. During the change, callers search, measure recall,
write, edit and delete. The benchmark pauses the change once, and repeatedly kills a process with
SIGKILL and restarts it. Requests to a killed process are retried, and all other failures count. The
command prints the progress, latencies by phase, failures and the lowest recall. It also prints how
many memories are lost or do not have exactly one vector.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import signal
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import httpx
import numpy as np
import redis.asyncio

from agent_memory.foundation.storage.keyspace import Keys
from benchmarks.setup import corpus
from benchmarks.setup.preload import PER_USER, preload
from benchmarks.setup.stack import COMMAND, Process, Stack, free_port, running

_KILL_SECONDS = 15.0
_QUESTIONS = 50
_MODEL = "text-embedding-other"
_DIMENSIONS = 512


class Member:
    """A process that can be killed and restarted. An API keeps its port."""

    def __init__(self, stack: Stack, name: str) -> None:
        self.name = name
        self.http = httpx.AsyncClient()
        self.kills = self._starts = 0
        self.down = True
        self._stack = stack
        port = str(free_port())
        is_api = name.startswith("api")
        self._command = [*COMMAND, "api", "--port", port] if is_api else [*COMMAND, "worker"]
        self._says = r"agent-memory listens on (\S+)" if is_api else "(worker ready)"
        self._process: Process | None = None

    async def start(self) -> None:
        environment = {**self._stack.environment, "LOG_LEVEL": "INFO"}
        self._starts += 1
        if self._process is not None:
            await asyncio.to_thread(self._process.end)
        # Not in a thread: a cancellation would leave the process behind.
        self._process = Process(f"{self.name}-{self._starts}", self._command, self._stack.folder, environment)
        url = await self._process.wait_for_output(self._says)
        # Create a new client, because the old connections belong to the killed process.
        await self.http.aclose()
        self.http = httpx.AsyncClient(base_url=url if url.startswith("http") else "", timeout=60)
        self.down = False

    async def kill(self) -> None:
        assert self._process is not None
        self.kills += 1
        self.down = True
        os.kill(self._process.pid, signal.SIGKILL)
        await asyncio.to_thread(self._process.end)

    async def end(self) -> None:
        await self.http.aclose()
        if self._process is not None:
            await asyncio.to_thread(self._process.end)


class Callers:
    """Sends requests until cancelled, and records failures, latencies by phase, and recall."""

    def __init__(self, apis: Sequence[Member], memories: int) -> None:
        self.apis = apis
        self.phase = "none"
        self.counts: Counter[str] = Counter()
        self.seconds: dict[tuple[str, str], list[float]] = defaultdict(list)
        self.written: set[str] = set()
        self.deleting: set[str] = set()
        self.deleted: set[str] = set()
        self.recall: list[float] = []
        self._users = memories // PER_USER
        self._turn = itertools.count()

    async def send(self, kind: str, method: str, path: str, **more: Any) -> httpx.Response:
        """Send a request, switching between APIs until one responds."""
        while True:
            api = self.apis[next(self._turn) % len(self.apis)]
            if api.down:
                await asyncio.sleep(0.01)
                continue
            kills, began, phase = api.kills, time.monotonic(), self.phase
            try:
                answer = await api.http.request(method, path, **more)
            except httpx.HTTPError as error:
                was_killed = api.kills != kills
                self.counts["sent again after a kill" if was_killed else f"{kind} failed: {error!r}"] += 1
                continue
            self.seconds[phase, kind].append(time.monotonic() - began)
            fine = answer.status_code in (200, 202)
            self.counts[kind if fine else f"{kind} failed: {answer.status_code} {answer.text[:200]}"] += 1
            return answer

    async def measure(self) -> float:
        """Return the share of questions whose memory is among the top five semantic hits."""
        matches = 0
        for number in range(_QUESTIONS):
            owner, place = 2 * (number * 7 % (self._users // 2)) + 1, number * 13 % PER_USER
            body = {"text": corpus.question(owner, place), "search_mode": "semantic", "limit": 5, "user_id": {"eq": corpus.user(owner)}}
            answer = (await self.send("recall", "POST", "/v1/long-term-memory/search", json=body)).json()
            matches += corpus.fact(owner, place) in [memory["text"] for memory in answer.get("memories", ())]
        return matches / _QUESTIONS

    async def search(self) -> None:
        for number in itertools.count():
            owner = number % self._users
            body = {"text": corpus.question(owner, number % PER_USER, str(number)), "user_id": {"eq": corpus.user(owner)}, "limit": 5}
            await self.send("search", "POST", "/v1/long-term-memory/search", json=body)
            await asyncio.sleep(0.05)

    async def ask(self) -> None:
        while True:
            self.recall.append(await self.measure())

    async def write(self) -> None:
        for number in itertools.count():
            name, owner = f"new-{number}", 2 * (number % (self._users // 2 - 1)) + 2
            memory = {"id": name, "text": f"{corpus.fact(number, 1)} {number}", "user_id": corpus.user(owner), "memory_type": "semantic"}
            if (await self.send("write", "POST", "/v1/long-term-memory/", json={"memories": [memory]})).status_code == 200:
                self.written.add(name)
            if number % 5 == 1:
                edit = {"text": f"{corpus.fact(number, 2)} edited {number}"}
                await self.send("edit", "PATCH", f"/v1/long-term-memory/new-{number - 1}", json=edit)
            if number % 20 == 19:
                self.deleting.add(name := f"new-{number - 10}")
                await self.send("delete", "DELETE", "/v1/long-term-memory", params={"memory_ids": [name]})
                self.deleted.add(name)
            await asyncio.sleep(0.1)

    async def reembed(self, action: str = "", **body: Any) -> httpx.Response:
        """Start, pause, resume or confirm the model change. With no arguments, return its state."""
        method = "POST" if action or body else "GET"
        return await self.send("reembed", method, f"/v1/reembed/{action}".rstrip("/"), **({"json": body} if body else {}))

    async def reach(self, phase: str, done: int = 0) -> None:
        last = ""
        while True:
            status = (await self.reembed()).json()
            self.phase = status["phase"]
            if (line := " ".join(f"{name}={value}" for name, value in status.items() if value)) != last:
                print(f"{time.strftime('%X')} {line}", flush=True)
            last = line
            if status["phase"] == phase and status["done"] >= done:
                return
            await asyncio.sleep(2)


async def _kill(members: Sequence[Member]) -> None:
    for member in itertools.cycle(members):
        await asyncio.sleep(_KILL_SECONDS)
        print(f"{time.strftime('%X')} kill {member.name}", flush=True)
        await member.kill()
        await member.start()


async def _change(callers: Callers) -> None:
    half = (await callers.reembed(model=_MODEL, dimensions=_DIMENSIONS)).json()["texts"]
    while not half:
        await asyncio.sleep(0.5)
        half = (await callers.reembed()).json()["texts"] // 2
    await callers.reach("filling", half // 2)
    await callers.send("erasure", "DELETE", f"/v1/users/{corpus.user(0)}")
    await callers.reach("filling", half)
    await callers.reembed("pause")
    await callers.reach("paused")
    await asyncio.sleep(3)
    await callers.reembed("resume")
    await callers.reach("swapped")
    await asyncio.sleep(2 * _KILL_SECONDS)
    await callers.reach("swapped")
    while (answer := await callers.reembed("confirm")).status_code == 409:
        callers.counts[f"reembed failed: 409 {answer.text[:200]}"] -= 1
        print("confirm:", answer.json()["detail"], flush=True)
        await asyncio.sleep(2)
    await callers.reach("none")


async def _rest(callers: Callers) -> None:
    pending = True
    while pending:
        await asyncio.sleep(1)
        pending = any(work["pending"] for work in (await callers.send("ready", "GET", "/v1/ready")).json()["checks"]["work"].values())


async def _stored(url: str, callers: Callers, memories: int) -> tuple[dict[str, int], int]:
    """Count documents by number of vectors, and vectors by model.

    Also return how many memories are lost, or exist despite being deleted.
    """
    client, keys = redis.asyncio.Redis.from_url(url), Keys("am")
    counts: Counter[str] = Counter()
    for prefix in (keys.vector_prefix, keys.history_prefix):
        async for key in client.scan_iter(match=f"{prefix}*", count=1000):
            fields = cast("list[bytes]", await client.hkeys(key))
            vectors = [name.decode() for name in fields if name.startswith(b"v_")]
            counts.update([f"{prefix[-2]} with {len(vectors)} vectors", *vectors])
    present = {key.decode() async for key in client.scan_iter(match=f"{keys.memory_prefix}*", count=1000)}
    await client.aclose()
    expected = {f"bench-{number:08d}" for number in range(PER_USER, memories)} | callers.written - callers.deleting
    deleted = {f"bench-{number:08d}" for number in range(PER_USER)} | callers.deleted
    counts["m"] = len(present)
    expected_keys, deleted_keys = ({keys.memory(keys.mid("default", name)) for name in names} for names in (expected, deleted))
    return dict(counts), len(expected_keys - present) + len(deleted_keys & present)


def _report(callers: Callers) -> None:
    for (phase, kind), seconds in sorted(callers.seconds.items()):
        if kind in ("search", "recall", "write", "edit", "delete"):
            p50, p99 = np.percentile(seconds, [50, 99]) * 1000
            print(f"{phase:8} {kind:7} {len(seconds):6} requests, p50 {p50:5.0f} ms, p99 {p99:5.0f} ms, max {max(seconds) * 1000:5.0f} ms")


async def _run(memories: int, folder: Path) -> int:
    async with running(folder, apis=0, workers=0, settings={"WORKER_NICENESS": "0"}) as stack:
        filled = await preload(stack.redis_url, dict(stack.environment), 0, memories)
        print(f"{memories} memories in {filled.seconds:.0f} s", flush=True)
        members = [Member(stack, name) for name in ("api-0", "worker-0", "api-1", "worker-1")]
        callers = Callers([member for member in members if member.name.startswith("api")], memories)
        try:
            await asyncio.gather(*(member.start() for member in members))
            before = await callers.measure()
            began = time.monotonic()
            tasks = [asyncio.create_task(work) for work in (callers.search(), callers.ask(), callers.write(), _kill(members))]
            changing = asyncio.create_task(_change(callers))
            await asyncio.wait([changing, *tasks], return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                task.cancel()
            ends = [end for end in await asyncio.gather(*tasks, return_exceptions=True) if not isinstance(end, asyncio.CancelledError)]
            print(f"callers that ended: {ends}", flush=True)
            await changing
            print(f"finished after {time.monotonic() - began:.0f} s; kills: { ({member.name: member.kills for member in members}) }")
            await asyncio.gather(*(member.start() for member in members if member.down))
            await _rest(callers)
            after = await callers.measure()
            _report(callers)
            stored, lost = await _stored(stack.redis_url, callers, memories)
        finally:
            for member in members:
                await member.end()
    failures = {name: count for name, count in callers.counts.items() if "failed" in name and count}
    print(json.dumps({"requests": {name: count for name, count in callers.counts.items() if "failed" not in name}, "stored": stored}))
    print(f"recall before {before}, lowest of {len(callers.recall)} {min(callers.recall)}, after {after}")
    print(f"errors {sum(failures.values())} {failures or ''}, lost or not deleted {lost}")
    single = stored["v with 1 vectors"] == stored["m"] and not stored.keys() & {f"{kind} with 2 vectors" for kind in ("v", "h")}
    return 0 if single and not failures and not lost and not ends and min(callers.recall) >= before <= after else 1


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reembed", description=__doc__)
    parser.add_argument("--memories", type=int, default=50_000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        sys.exit(asyncio.run(_run(arguments.memories, Path(folder))))


if __name__ == "__main__":
    main()
