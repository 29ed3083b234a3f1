"""The command line as a process of its own, in an environment without the developer's settings."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from agent_memory.settings import variables

COMMAND = [sys.executable, "-m", "agent_memory.cli.app"]
ROOT = Path(__file__).resolve().parents[2]


def clean_environment(**extra: str) -> dict[str, str]:
    """The environment without any of our variables, plus `extra`."""
    known = variables()
    return {**{name: value for name, value in os.environ.items() if name.upper() not in known}, **extra}


def agent_memory(*arguments: str, cwd: Path, seconds: float = 180, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs `agent-memory ARGUMENTS` to its end in `cwd`."""
    return subprocess.run(
        [*COMMAND, *arguments],
        cwd=cwd,
        env=clean_environment(**environment),
        capture_output=True,
        text=True,
        timeout=seconds,
        stdin=subprocess.DEVNULL,
        check=False,
    )
