"""Start, stop and signal the processes under test: Redis, APIs and workers."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import socket
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from tests.support.cli import ROOT, clean_environment
from tests.support.waiting import wait_until
from tests.system.faults import nursery
from tests.system.faults.skew import library

# Below the ports that kernels assign to outgoing connections.
_PORTS = range(22000, 30000)
# By path: only the server comes from another checkout, not this helper.
_NURSERY = Path(nursery.__file__)
_START_SECONDS = 60.0
# Seconds before a supervisor restarts a process that failed.
_SUPERVISOR_SECONDS = 0.3


def free_port() -> int:
    for _ in range(200):
        port = random.choice(_PORTS)
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("no free port")


def environment(**extra: str) -> dict[str, str]:
    """Return an environment with this process's import path and no developer settings."""
    path = os.pathsep.join(dict.fromkeys([str(ROOT), *(str(Path(part).absolute()) for part in sys.path if part)]))
    ours = {"NEIGHBOURS_AFTER_SECONDS": "0.2", "BODY_TIMEOUT_SECONDS": "10", "SHUTDOWN_DRAIN_SECONDS": "0.3"}
    return clean_environment(PYTHONPATH=path, OPENBLAS_NUM_THREADS="1", **ours, **extra)


@dataclass
class Process:
    """A running command. `code` is its exit code once it has ended."""

    name: str
    pid: int
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    code: int | None = None

    @property
    def alive(self) -> bool:
        return not self.ended.is_set()

    def send(self, number: int) -> bool:
        """Send a signal unless the process has ended."""
        if not self.alive:
            return False
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:
            return False
        return True

    async def end(self, number: int = signal.SIGKILL, seconds: float = 30) -> int | None:
        """Signal the process and wait for it to end. Send SIGKILL if that takes too long."""
        self.send(signal.SIGCONT)
        self.send(number)
        try:
            async with asyncio.timeout(seconds):
                await self.ended.wait()
        except TimeoutError:
            self.send(signal.SIGKILL)
            await self.ended.wait()
        return self.code


class Nursery:
    """Controls the parent process that forks the server processes (see nursery.py)."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._parent: asyncio.subprocess.Process | None = None
        self._started: dict[str, asyncio.Future[int]] = {}
        self._living: dict[int, Process] = {}
        self._reading: asyncio.Task[None] | None = None
        self.codes: list[tuple[str, int]] = []
        """Names and exit codes of all ended processes, in order."""
        self.can_skew = False
        """True if processes can have wrong clocks."""

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[Nursery]:
        """Start the nursery, and end all remaining processes on exit."""
        built = library(self._folder)
        self.can_skew = built is not None
        preload = {"LD_PRELOAD": str(built)} if built else {}
        self._parent = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            str(_NURSERY),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env=environment(**preload),
            cwd=ROOT,
        )
        self._reading = asyncio.create_task(self._read())
        try:
            yield self
        finally:
            for process in list(self._living.values()):
                await process.end(signal.SIGTERM, 10)
            assert self._parent.stdin is not None
            self._parent.stdin.close()
            await self._parent.wait()
            await self._reading

    async def start(self, name: str, *arguments: str, skew: int = 0, **settings: str) -> Process:
        """Run `agent-memory ARGUMENTS` with its clock off by `skew` seconds."""
        assert self._parent is not None
        assert self._parent.stdin is not None
        order = {
            "name": name,
            "arguments": arguments,
            "environment": settings,
            "cwd": str(self._folder),
            "log": str(self._folder / f"{name}.log"),
            "skew": skew if self.can_skew else 0,
        }
        self._started[name] = started = asyncio.get_running_loop().create_future()
        self._parent.stdin.write(json.dumps(order).encode() + b"\n")
        await self._parent.stdin.drain()
        pid = await asyncio.wait_for(started, _START_SECONDS)
        return self._living[pid]

    async def _read(self) -> None:
        assert self._parent is not None
        assert self._parent.stdout is not None
        while line := await self._parent.stdout.readline():
            said = json.loads(line)
            if "started" in said:
                self._living[said["pid"]] = Process(said["started"], said["pid"])
                waiting = self._started.pop(said["started"])
                if not waiting.done():  # the waiting task may have been canceled meanwhile
                    waiting.set_result(said["pid"])
            elif "ended" in said and (process := self._living.pop(said["ended"], None)):
                process.code = said["code"]
                self.codes.append((process.name, said["code"]))
                process.ended.set()


@dataclass
class Member:
    """A process that the fleet restarts whenever it ends."""

    name: str
    arguments: tuple[str, ...]
    settings: dict[str, str]
    port: int | None = None
    skew: int = 0
    process: Process | None = None
    starts: int = 0
    stopped: bool = False
    """Currently stopped by SIGSTOP."""


class Fleet:
    """Starts all members and restarts any that end."""

    def __init__(self, nursery: Nursery, places: list[Member]) -> None:
        self._nursery = nursery
        self.places = {place.name: place for place in places}
        self._keeping: list[asyncio.Task[None]] = []

    def of(self, kind: str) -> list[Member]:
        """Return the members that run this command."""
        return [place for place in self.places.values() if place.arguments[0] == kind]

    async def add(self, place: Member) -> None:
        """Start another member and keep it running."""
        self.places[place.name] = place
        await self._fill(place)
        self._keeping.append(asyncio.create_task(self._keep(place)))

    @property
    def api_urls(self) -> list[str]:
        return [f"http://127.0.0.1:{place.port}" for place in self.of("api")]

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[Fleet]:
        """Start all members in order, keep them running, and stop them in reverse order on exit."""
        try:
            for place in self.places.values():
                await self._fill(place)
                if place.arguments[0] == "redis":
                    assert place.port is not None
                    await until_listening(place.port)
                self._keeping.append(asyncio.create_task(self._keep(place)))
            yield self
        finally:
            for task in self._keeping:
                task.cancel()
            await asyncio.gather(*self._keeping, return_exceptions=True)
            for place in reversed(list(self.places.values())):
                if place.process is not None:
                    await place.process.end(signal.SIGTERM, 20)

    async def _fill(self, place: Member) -> None:
        place.process = await self._nursery.start(place.name, *place.arguments, skew=place.skew, **place.settings)
        place.starts += 1
        place.stopped = False

    async def _keep(self, place: Member) -> None:
        while True:
            assert place.process is not None
            await place.process.ended.wait()
            if place.process.code == 1:
                await asyncio.sleep(_SUPERVISOR_SECONDS)  # it could not start, because Redis is down
            await self._fill(place)

    async def ready(self, seconds: float = _START_SECONDS) -> None:
        """Wait until every API is ready."""
        async with httpx.AsyncClient(timeout=5) as http:
            for url in self.api_urls:

                async def answers(url: str = url) -> bool:
                    try:
                        return (await http.get(f"{url}/v1/ready")).status_code == 200
                    except httpx.HTTPError:
                        return False

                await wait_until(answers, f"readiness of {url}", seconds)

    def kill(self, place: Member, number: int = signal.SIGKILL) -> bool:
        """Send a signal to a member's process."""
        if place.process is None or not place.process.alive:
            return False
        if place.stopped and number in (signal.SIGTERM, signal.SIGKILL):
            place.process.send(signal.SIGCONT)
            place.stopped = False
        return place.process.send(number)

    def stop(self, place: Member) -> bool:
        """Send SIGSTOP."""
        place.stopped = self.kill(place, signal.SIGSTOP)
        return place.stopped

    def resume(self, place: Member) -> None:
        """Send SIGCONT."""
        self.kill(place, signal.SIGCONT)
        place.stopped = False

    def kill_redis_server(self, place: Member) -> bool:
        """Kill the redis-server child of `agent-memory redis`, which restarts it."""
        if place.process is None or not place.process.alive:
            return False
        for pid in children(place.process.pid):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
            return True
        return False


def children(pid: int) -> list[int]:
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += [int(word) for word in task.read_text().split()]
        except OSError:
            continue
    return found


async def until_listening(port: int, seconds: float = _START_SECONDS) -> None:
    async def listens() -> bool:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            return False
        writer.close()
        return True

    await wait_until(listens, f"a listener on port {port}", seconds)


def redis_url(data_dir: Path, port: int) -> str:
    """Return a Redis URL with the password from redis.conf."""
    for line in (data_dir / "redis.conf").read_text().splitlines():
        name, _, value = line.partition(" ")
        if name == "requirepass":
            return f"redis://:{value.strip(chr(34))}@127.0.0.1:{port}/0"
    raise AssertionError("redis.conf has no password")
