"""Compare the times for F3, F10 and F11 with their limits.

Run `python -m tests.system.faults.times` on an idle machine. The exit code is 1 if a time exceeds
its limit.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import redis.asyncio as aioredis
import uvloop

from tests.support.rig import gathered
from tests.support.waiting import wait_until
from tests.system.faults.run import Ground, ground
from tests.system.test_pressure import plain_post

# In addition to the loading time that Redis reports; after the end of the cause; until a client's answer.
_READY_SECONDS = 5.0
_HEALED_SECONDS = 10.0
# The deadline of 4.5 s, and the time to connect and to receive the answer.
_ANSWER_SECONDS = 5.0
_PATIENCE_SECONDS = 120.0
_STATES = {
    "full": ({"maxmemory": "1mb"}, {"maxmemory": "0"}),
    "without replicas": ({"min-replicas-to-write": "1"}, {"min-replicas-to-write": "0"}),
}
_SAID = {
    "loading": b"-LOADING Redis is loading the dataset in memory\r\n",
    "unable to write": b"-MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.\r\n",
}


@dataclass(frozen=True)
class Taken:
    """A measured time and its limit, in seconds."""

    what: str
    seconds: float
    limit: float

    @property
    def holds(self) -> bool:
        return self.seconds <= self.limit

    def __str__(self) -> str:
        return f"{'holds ' if self.holds else 'FAILS '} {self.what}: {self.seconds:.2f} s, at most {self.limit:.2f} s"


@dataclass
class _Site:
    on: Ground
    http: httpx.AsyncClient
    url: str

    async def writes(self) -> int:
        """Send a write and return its status, or 0 if there is no response."""
        body = {"messages": [{"role": "user", "content": "I moved to Lisbon in May"}]}
        try:
            return (await self.http.post(f"{self.url}/v1/working-memory/times/messages", json=body)).status_code
        except httpx.HTTPError:
            return 0

    async def until(self, status: int) -> float:
        """Return the seconds until a write gets this status."""
        begun = time.monotonic()

        async def so() -> bool:
            return await self.writes() == status

        await wait_until(so, f"an answer {status}", _PATIENCE_SECONDS)
        return time.monotonic() - begun


@asynccontextmanager
async def _site(folder: Path) -> AsyncGenerator[_Site]:
    async with (
        ground(folder, apis=1, workers=1, LOG_LEVEL="ERROR", REDIS_POOL_SIZE="16", REQUEST_TIMEOUT_SECONDS="4.5") as on,
        httpx.AsyncClient(timeout=30) as http,
    ):
        site = _Site(on, http, on.fleet.api_urls[0])
        await site.until(200)
        yield site


async def killed(site: _Site, kills: int, memories: int) -> list[Taken]:
    """Measure F3, the time from killing Redis to the next successful write."""
    for start in range(0, memories, 100):
        some = [{"id": f"t{number}", "text": f"Entry {number}: Ana sails to harbour {number % 97}"} for number in range(start, start + 100)]
        (await site.http.post(f"{site.url}/v1/long-term-memory/", json={"memories": some})).raise_for_status()
    log = site.on.data_dir / "redis.log"
    taken: list[Taken] = []
    for number in range(kills):
        loads = len(_loads(log))
        keeper = site.on.fleet.places["redis"]
        begun = time.monotonic()
        assert site.on.fleet.kill(keeper) if number % 2 else site.on.fleet.kill_redis_server(keeper)
        seen: Counter[int] = Counter()

        async def back(loads: int = loads, seen: Counter[int] = seen) -> bool:
            status = await site.writes()
            seen[status] += 1
            return status == 200 and len(_loads(log)) > loads

        await wait_until(back, "a write after the kill", _PATIENCE_SECONDS)
        seconds = time.monotonic() - begun
        loaded = sum(_loads(log)[loads:])
        kind = "Redis and its keeper killed" if number % 2 else "redis-server killed"
        taken.append(
            Taken(
                f"F3 {kind}, loaded in {loaded:.2f} s, answers {dict(sorted(seen.items()))}: ready after", seconds, loaded + _READY_SECONDS
            )
        )
    return taken


def _loads(log: Path) -> list[float]:
    return [
        float(seconds) for seconds in re.findall(r"DB loaded from append only file: ([\d.]+) seconds", log.read_text("utf-8", "replace"))
    ]


async def spoilt(site: _Site) -> list[Taken]:
    """Measure F10, the time until writes succeed once Redis accepts them again."""
    direct = site.on.direct()

    async def states() -> AsyncGenerator[tuple[str, Callable[[], Awaitable[object]], Callable[[], Awaitable[object]]]]:
        for name, (spoil, heal) in _STATES.items():
            yield name, lambda s=spoil: _configured(direct, s), lambda h=heal: _configured(direct, h)
        yield "a replica, then promoted", lambda: _replica(direct, "127.0.0.1", "1"), lambda: _replica(direct, "NO", "ONE")
        for name, said in _SAID.items():
            yield name, lambda s=said: _says(site.on, s), lambda: _says(site.on, None)

    taken: list[Taken] = []
    try:
        async for name, spoil, heal in states():
            await spoil()
            await site.until(503)
            await heal()
            taken.append(Taken(f"F10 {name}: writes again after", await site.until(200), _HEALED_SECONDS))
    finally:
        await direct.aclose()
    return taken


async def _configured(direct: aioredis.Redis, values: dict[str, str]) -> None:
    for name, value in values.items():
        await direct.config_set(name, value)


async def _replica(direct: aioredis.Redis, host: str, port: str) -> None:
    await direct.execute_command("REPLICAOF", host, port)


async def _says(on: Ground, answer: bytes | None) -> None:
    on.redis.answer = answer


async def crowded(site: _Site, clients: int) -> list[Taken]:
    """Measure F11, many concurrent requests on few slow connections, then dropped packets."""
    statuses: Counter[str] = Counter()

    async def one(number: int) -> float:
        begun = time.monotonic()
        message = {"role": "user", "content": f"I bought house number {number}", "id": f"m{number}", "created_at": "2026-01-02"}
        body: dict[str, Any] = {"text": "a house in Lisbon"} if number % 3 == 0 else {"messages": [message]}
        path = "/v1/long-term-memory/search" if number % 3 == 0 else f"/v1/working-memory/s{number % 7}/messages"
        statuses[(await plain_post(site.url, path, body))[0]] += 1
        return time.monotonic() - begun

    taken: list[Taken] = []
    for name, fault in (("200 ms to Redis", {"delay": 0.1}), ("packets dropped", {"swallow": True})):
        statuses.clear()
        for attribute, value in fault.items():
            setattr(site.on.redis, attribute, value)
        slowest = max(await gathered(one(number) for number in range(clients)))
        site.on.redis.heal()
        site.on.redis.cut()
        taken.append(Taken(f"F11 {clients} at once, {name}, {dict(statuses)}: slowest answer", slowest, _ANSWER_SECONDS))
        taken.append(Taken(f"F11 after {name}: writes again after", await site.until(200), _HEALED_SECONDS))
    return taken


async def measure(folder: Path, kills: int, memories: int, clients: int) -> list[Taken]:
    async with _site(folder / "times") as site:
        return [*await killed(site, kills, memories), *await spoilt(site), *await crowded(site, clients)]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.system.faults.times", description=__doc__)
    parser.add_argument("--kills", type=int, default=6, help="of Redis, by turns with and without what keeps it running (6)")
    parser.add_argument("--memories", type=int, default=5000, help="in the store, for there to be something to load (5000)")
    parser.add_argument("--clients", type=int, default=500, help="requests at once (500)")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="times-") as folder:
        taken = uvloop.run(measure(Path(folder), given.kills, given.memories, given.clients))
    print(*taken, sep="\n")
    return 0 if all(one.holds for one in taken) else 1


if __name__ == "__main__":
    sys.exit(main())
