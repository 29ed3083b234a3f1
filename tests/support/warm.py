"""Start command-line processes quickly by forking one that has already imported everything."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from multiprocessing import reduction
from pathlib import Path
from typing import Any

_IMPORTED = [
    "agent_memory.interfaces.cli.run",
    "agent_memory.interfaces.cli.commands.doctor",
    "agent_memory_eval.commands.recall",
    "agent_memory_worker.main",
    # Modules that a client's first request imports.
    "anyio._backends._asyncio",
    "httpcore",
    "tests.support.shared.preloaded",
]


class _Fd:
    """A file descriptor to pass to a child process."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __reduce__(self) -> tuple[Callable[[Any], int], tuple[Any]]:
        return _detached, (reduction.DupFd(self.number),)


def _detached(duplicate: Any) -> int:
    return duplicate.detach()


def _run(code: str, arguments: list[str], cwd: str, environment: dict[str, str], *files: int) -> None:
    os.chdir(cwd)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # A shell's background jobs, such as a test run, ignore Ctrl-C.
    os.environ.clear()
    os.environ.update(environment)
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    sys.argv = ["agent-memory", *arguments]
    exec(compile(code, "<program>", "exec"), {"__name__": "__main__"})


class WarmProcess:
    """A forked child that runs `agent-memory ARGUMENTS` or another program.

    Its attributes work like those of `subprocess.Popen`, but it skips two seconds of imports.
    """

    def __init__(
        self, arguments: Sequence[str], *, cwd: Path, environment: dict[str, str], stdout: int, stderr: int, code: str = ""
    ) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(_IMPORTED)
        code = code or "from agent_memory.interfaces.cli.app import main\nmain()"
        with open(os.devnull, "rb") as nothing:
            files = (_Fd(nothing.fileno()), _Fd(stdout), _Fd(stderr))
            self._process = context.Process(target=_run, args=(code, [*arguments], str(cwd), environment, *files))
            self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        code = self._process.exitcode
        if code is None:
            raise subprocess.TimeoutExpired("agent-memory", timeout or 0)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self._process.kill()
