"""Processes of the command line that need not import it first: children of one process that has, with everything else of their own."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable
from multiprocessing import reduction
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

_IMPORTED = ["agent_memory.cli.run", "agent_memory.cli.doctor", "agent_memory.cli.evaluate", "agent_memory_worker.main"]


class _Fd:
    """A file descriptor on its way into a child."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __reduce__(self) -> tuple[Callable[[Any], int], tuple[Any]]:
        return _detached, (reduction.DupFd(self.number),)


def _detached(duplicate: Any) -> int:
    return duplicate.detach()


def _run(code: str, arguments: list[str], cwd: str, environment: dict[str, str], *files: int) -> None:
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    sys.argv = ["agent-memory", *arguments]
    exec(compile(code, "<program>", "exec"), {"__name__": "__main__"})


def warm_process(
    arguments: list[str], *, cwd: Path, environment: dict[str, str], stdout: int, stderr: int, code: str = ""
) -> ForkServerProcess:
    """A child that runs `agent-memory ARGUMENTS`, or a program of its own, and has begun. It is a process like any other to signals."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_IMPORTED)
    code = code or "from agent_memory.cli.app import main\nmain()"
    with open(os.devnull, "rb") as nothing:
        files: Any = (_Fd(nothing.fileno()), _Fd(stdout), _Fd(stderr))
        process = context.Process(target=_run, args=(code, arguments, str(cwd), environment, *files))
        process.start()
    return process
