"""Run the server in separate processes, as users do."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.support.cli import COMMAND, clean_environment, light_model
from tests.support.warm import WarmProcess

START_SECONDS = 120.0
STOP_SECONDS = 60.0
_POLL_SECONDS = 0.02

# Short leases: a killed worker's work is due again soon. Workers keep their priority, because they would hardly start on a busy machine.
QUICK = {
    "WORKER_NICENESS": "0",
    "WORKER_LEASE_SECONDS": "2",
    "WORKER_REDELIVERY_TIMEOUT_SECONDS": "2",
    "WORKER_RETRY_BASE_SECONDS": "0.1",
    "WORKER_RETRY_MAX_SECONDS": "1",
    "NEIGHBOURS_AFTER_SECONDS": "0.2",
    "SHUTDOWN_DRAIN_SECONDS": "0",  # no shutdown waits for clients to move to other processes
    "BODY_TIMEOUT_SECONDS": "10",  # a test that pauses within a request gets no timeout
}


class Running:
    """A process and its children. Its output goes to a log file."""

    def __init__(self, name: str, process: subprocess.Popen[bytes] | WarmProcess, log: Path) -> None:
        self.name = name
        self.process = process
        self.log = log

    @property
    def output(self) -> str:
        return self.log.read_text("utf-8", "replace")

    async def said(self, pattern: str, seconds: float = START_SECONDS) -> str:
        """Wait for matching output and return the first group. Fail if the process exits first."""
        deadline = time.monotonic() + seconds
        while not (found := re.search(pattern, self.output)):
            ended = self.process.poll()
            assert ended is None, f"{self.name} ended with exit code {ended} before it said {pattern!r}:\n{self.output}"
            assert time.monotonic() < deadline, f"{self.name} did not say {pattern!r} within {seconds:.0f} s:\n{self.output}"
            await asyncio.sleep(_POLL_SECONDS)
        return found[1]

    async def base_url(self) -> str:
        """Wait until the API is listening and return its URL."""
        return await self.said(r"agent-memory listens on (\S+)")

    async def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Signal the process, wait for it and its children to exit, and return the exit code."""
        family = tree(self.process.pid)
        self.process.send_signal(number)
        await self._gone(family)
        return self.process.wait()

    async def kill(self) -> None:
        """Kill the process and its children with SIGKILL."""
        os.kill(self.process.pid, signal.SIGSTOP)  # or it would restart its Redis
        family = tree(self.process.pid)
        for pid in reversed(family):
            _send(pid, signal.SIGKILL)
        self.process.wait()
        await self._gone(family)

    async def _gone(self, family: list[int]) -> None:
        deadline = time.monotonic() + STOP_SECONDS
        while left := [pid for pid in family if alive(pid)]:
            self.process.poll()
            assert time.monotonic() < deadline, f"{self.name} left processes behind: {left}\n{self.output}"
            await asyncio.sleep(_POLL_SECONDS)


def start(folder: Path, *arguments: str, warm: bool = False, **environment: str) -> Running:
    """Start `agent-memory ARGUMENTS` in a folder with test settings. `warm` skips the imports."""
    log = folder / f"{arguments[0]}-{time.monotonic_ns()}.log"
    given = clean_environment(**{**QUICK, **light_model(), **environment})
    with log.open("wb") as output:
        if warm:
            process = WarmProcess(arguments, cwd=folder, environment=given, stdout=output.fileno(), stderr=output.fileno())
            return Running(arguments[0], process, log)
        process = subprocess.Popen(
            [*COMMAND, *arguments],
            cwd=folder,
            env=given,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    return Running(arguments[0], process, log)


@asynccontextmanager
async def running(folder: Path, *arguments: str, warm: bool = False, **environment: str) -> AsyncGenerator[Running, None]:
    """Start a process like `start`, and kill it on exit. Failing tests show its output."""
    one = start(folder, *arguments, warm=warm, **environment)
    try:
        yield one
    except BaseException as error:
        error.add_note(f"--- {one.name} said:\n{one.output[-8000:]}")
        raise
    finally:
        if one.process.poll() is None:
            await one.kill()


def tree(pid: int) -> list[int]:
    """Return the pids of a process and its descendants, parents first."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and (parent := _parent(entry)):
            children.setdefault(parent, []).append(int(entry.name))
    family = [pid]
    for member in family:
        family.extend(children.get(member, []))
    return family


def alive(pid: int) -> bool:
    """True if the process is running and not a zombie."""
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().rpartition(") ")[2][0] not in "ZX"
    except OSError:
        return False


def _parent(entry: Path) -> int | None:
    try:
        return int((entry / "stat").read_text().rpartition(") ")[2].split()[1])
    except OSError:
        return None  # it ended in the meantime


def _send(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return
