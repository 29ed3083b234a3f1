"""Run a server in a separate process, and report what blocks its event loop."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import httpx

from tests.support.cli import clean_environment
from tests.support.heartbeat import reference_seconds
from tests.support.processes import Running
from tests.support.waiting import wait_until

# CPU time of the loop's thread. A health check needs some turns of the loop.
_MOST_SECONDS = 0.25


class Held(NamedTuple):
    """The longest turn of the loop since the last request, and whether work is pending."""

    seconds: float
    where: str
    waiting: bool


@dataclass
class Watched:
    """A server that measures its event loop, with a list of turns that took too long."""

    client: httpx.AsyncClient
    bound: float
    found: list[str] = field(default_factory=list[str])
    tasks: Mapping[str, int] = field(default_factory=dict[str, int])
    _sent: httpx.Request | None = None

    async def send(self, what: str, request: httpx.Request) -> httpx.Response:
        """Send a request and record how long it blocked the loop."""
        self._sent = request
        answer = await self.client.send(request)
        await self._note(what, self._look)
        return answer

    async def rest(self, what: str) -> None:
        """Wait until workers are idle, and record how long they blocked the loop."""
        await self._note(f"a worker after {what}", self._rested)

    async def _note(self, what: str, look: Callable[[], Awaitable[Held]]) -> None:
        """Record whatever blocked the loop for too long.

        A request just above the limit is sent again, because a shared core can slow down one turn.
        """
        held = await look()
        for _ in range(2):
            if not self.bound < held.seconds < 2 * self.bound or self._sent is None:
                break
            await self.client.send(self._sent)
            held = min(held, await look(), key=lambda each: each.seconds)
        if held.seconds > self.bound:
            self.found.append(f"{what}: {held.seconds:.2f} s at\n{held.where}")
            print(self.found[-1], flush=True)

    async def _look(self, path: str = "/held") -> Held:
        answer = (await self.client.get(path)).json()
        self.tasks = answer["tasks"]
        return Held(answer["loop"], answer["where"], bool(answer["waiting"]))

    async def _rested(self) -> Held:
        looks: list[Held] = []

        async def idle() -> bool:
            looks.append(await self._look("/held?work"))
            return not looks[-1].waiting

        await wait_until(idle, "workers rest", seconds=300)
        return max(looks, key=lambda each: each.seconds)


@asynccontextmanager
async def watched_server(redis_url: str, folder: Path, **settings: str) -> AsyncGenerator[tuple[httpx.AsyncClient, float]]:
    """Run a server in a separate process. Yield a client and the time limit for a loop turn.

    The limit scales with the speed of this machine. `WATCHED_WORKER=no` omits the worker.
    """
    bound = _MOST_SECONDS * max(1.0, await asyncio.to_thread(reference_seconds) / 0.05)
    environment = clean_environment(
        WATCHED_REDIS=redis_url,
        KEY_PREFIX=folder.name,
        COMPAT_APIS="mem0,supermemory",
        BODY_TIMEOUT_SECONDS="60",
        REQUEST_TIMEOUT_SECONDS="120",
        EXTRACTION_DEBOUNCE_SECONDS="0",
        LOG_LEVEL="ERROR",
        **{"EMBEDDING_PROVIDER": "local", **settings},
    )
    log = folder / "server.log"
    with log.open("wb") as output:
        command = [sys.executable, "-m", "tests.support.stalls.watched_server"]
        process = await asyncio.to_thread(
            subprocess.Popen, command, env=environment, stdin=subprocess.PIPE, stdout=output, stderr=subprocess.STDOUT
        )
    server = Running("the watched server", process, log)
    try:
        async with httpx.AsyncClient(base_url=await server.base_url(), timeout=180) as client:
            yield client, bound
    finally:
        assert process.stdin is not None
        process.stdin.close()
        process.wait(60)
