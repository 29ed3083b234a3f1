"""Start and stop the processes for a run: Redis, the embedding server, APIs and workers."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import redis.asyncio

from benchmarks.setup.model import DIMENSIONS
from tests.support.cli import COMMAND, ROOT, clean_environment

_START_SECONDS = 120.0


@dataclass
class Stack:
    """The addresses and process ids of all services."""

    redis_url: str
    environment: dict[str, str]
    folder: Path
    apis: list[str] = field(default_factory=list)
    model: str = ""
    pids: dict[str, list[int]] = field(default_factory=dict)


class Process:
    """A child process whose output goes to a file."""

    def __init__(self, name: str, command: Sequence[str], folder: Path, environment: dict[str, str]) -> None:
        self.name = name
        self._log = folder / f"{name}.log"
        with self._log.open("wb") as output:
            self._child = subprocess.Popen(
                command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
            )
        self.pid = self._child.pid

    async def wait_for_output(self, pattern: str) -> str:
        """Wait until the output matches, and return the first group.

        Raises RuntimeError if the process exits or the output does not match in time.
        """
        for _ in range(int(_START_SECONDS / 0.02)):
            if match := re.search(pattern, self._log.read_text("utf-8", "replace")):
                return match[1]
            if self._child.poll() is not None:
                break
            await asyncio.sleep(0.02)
        raise RuntimeError(f"{self.name} did not start:\n{self._log.read_text('utf-8', 'replace')[-3000:]}")

    def end(self) -> None:
        """Send SIGTERM, then SIGKILL if the process does not exit within 30 s."""
        if self._child.poll() is None:
            self._child.send_signal(signal.SIGTERM)
            try:
                self._child.wait(30)
            except subprocess.TimeoutExpired:
                self._child.kill()
                self._child.wait()


def free_port() -> int:
    """Return an unused port on 127.0.0.1."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def child_environment(**extra: str) -> dict[str, str]:
    """Return the environment for child processes.

    It has this process's import path, uses one thread for linear algebra, and excludes the
    developer's settings.
    """
    path = os.pathsep.join(dict.fromkeys([str(ROOT), *(str(Path(part).absolute()) for part in sys.path if part)]))
    return clean_environment(PYTHONPATH=path, OPENBLAS_NUM_THREADS="1", **extra)


def settings_of(model: str, *, local: bool) -> dict[str, str]:
    """Return the settings for the server to be measured.

    These are the defaults, with an embedding model over HTTP unless `local` is true.
    """
    chosen = {"MODEL_PROVIDER": "local", "LOG_LEVEL": "WARNING"}
    if local:
        return {**chosen, "EMBEDDING_PROVIDER": "local"}
    return {
        **chosen,
        "EMBEDDING_PROVIDER": "openai",
        "EMBEDDING_BASE_URL": f"{model}/v1",
        "EMBEDDING_API_KEY": "none",
        "EMBEDDING_DIMENSIONS": str(DIMENSIONS),
    }


@asynccontextmanager
async def running(
    folder: Path,
    *,
    local: bool = False,
    apis: int = 1,
    workers: int = 1,
    settings: Mapping[str, str] | None = None,
    command: Sequence[str] | None = None,
    fill: Callable[[str], Awaitable[None]] | None = None,
) -> AsyncGenerator[Stack, None]:
    """Start all processes, yield the stack when it is ready, and stop them at the end.

    `settings` extends the defaults. `command` starts a different checkout. `fill` is called with
    the API's address while a temporary worker runs.
    """
    await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
    async with AsyncExitStack() as stack:

        def start(name: str, command: Sequence[str], environment: dict[str, str]) -> Process:
            process = Process(name, command, folder, environment)
            stack.callback(process.end)
            return process

        # A different checkout imports from its own environment.
        child = child_environment if command is None else clean_environment
        command = COMMAND if command is None else command
        port = free_port()
        model = f"http://127.0.0.1:{port}"
        embedder = start("model", [sys.executable, "-m", "benchmarks.setup.model", str(port)], child_environment())
        engine = start("redis", [*command, "redis"], child(DATA_DIR=str(folder / "data")))
        url = await engine.wait_for_output(r"REDIS_URL=(\S+)")
        client = redis.asyncio.Redis.from_url(url)
        redis_pid = int((await client.info("server"))["process_id"])
        await client.aclose()
        environment = child(REDIS_URL=url, **settings_of(model, local=local), **(settings or {}))
        made = Stack(url, environment, folder, model=model, pids={"redis": [redis_pid], "model": [embedder.pid]})
        for number in range(apis):
            process = start(f"api-{number}", [*command, "api", "--port", "0"], environment)
            made.pids.setdefault("api", []).append(process.pid)
            made.apis.append(await process.wait_for_output(r"agent-memory listens on (\S+)"))
        for number in range(workers):
            process = start(f"worker-{number}", [*command, "worker"], {**environment, "LOG_LEVEL": "INFO"})
            made.pids.setdefault("worker", []).append(process.pid)
            await process.wait_for_output(r"(worker)")
        if fill is not None:
            process = start("filling", [*command, "worker"], {**environment, "LOG_LEVEL": "INFO"})
            await process.wait_for_output(r"(worker)")
            await fill(made.apis[0])
            process.end()
        yield made
