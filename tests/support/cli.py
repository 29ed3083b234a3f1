"""Run the command line in a separate process without the developer's settings."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from agent_memory.foundation.core.settings import variables
from tests.support.warm import WarmProcess

COMMAND = [sys.executable, "-m", "agent_memory.interfaces.cli.app"]
ROOT = Path(__file__).resolve().parents[2]


def clean_environment(**extra: str) -> dict[str, str]:
    """Return the environment without the server's variables, plus `extra`."""
    known = variables()
    return {**{name: value for name, value in os.environ.items() if name.upper() not in known}, **extra}


def light_model() -> dict[str, str]:
    """Return the setting for an embedding model that starts faster than the default one."""
    return {"LOCAL_MODEL": os.environ.get("TEST_LOCAL_MODEL", "all-MiniLM-L6-v2")}


def unwrapped(text: str) -> str:
    """Join a command's output into one line, after asserting that no line is too long."""
    assert [line for line in text.splitlines() if len(line) > 100 and " " in line.strip()] == []
    return " ".join(text.split())


_EVAL = "from agent_memory_eval.__main__ import main\nmain()"


def agent_memory_eval(*arguments: str, cwd: Path, seconds: float = 180, **environment: str) -> subprocess.CompletedProcess[str]:
    return agent_memory(*arguments, cwd=cwd, seconds=seconds, code=_EVAL, **environment)


def agent_memory(
    *arguments: str, cwd: Path, seconds: float = 180, cold: bool = False, code: str = "", **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run `agent-memory ARGUMENTS` in a warm process, or in a new interpreter if `cold`.

    `code` is another program for the warm process.
    """
    # The figures of an evaluation are for the default model.
    environment = clean_environment(**({} if code else light_model()) | environment)
    if cold:
        return subprocess.run(
            [*COMMAND, *arguments],
            cwd=cwd,
            env=environment,
            capture_output=True,
            text=True,
            timeout=seconds,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    with tempfile.TemporaryFile("w+") as stdout, tempfile.TemporaryFile("w+") as stderr:
        process = WarmProcess(arguments, cwd=cwd, environment=environment, stdout=stdout.fileno(), stderr=stderr.fileno(), code=code)
        try:
            code = process.wait(seconds)
        finally:
            process.kill()
        for file in (stdout, stderr):
            file.seek(0)
        return subprocess.CompletedProcess(["agent-memory", *arguments], code, stdout.read(), stderr.read())
