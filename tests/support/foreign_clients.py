"""Run programs that use another product's client, installed by `scripts/tests.sh compat`."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
# These client lines are installed in the frameworks' environments.
_ENVIRONMENTS = {"mem0-2": "frameworks", "supermemory-3": "frameworks"}


async def run_program(program: Path, client: str, *arguments: str, **environment: str) -> Any:
    """Run a program with this client (such as `mem0-2`) and return its JSON output.

    Skip the test if the client is not installed.
    """
    python = ROOT / ".venvs" / _ENVIRONMENTS.get(client, client) / "bin" / "python"
    if not python.exists():
        pytest.skip(f"{client} is not installed: scripts/tests.sh compat does that")
    process = await asyncio.create_subprocess_exec(
        python,
        program,
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONWARNINGS": "ignore", **environment},
    )
    out, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()[-4000:]
    return json.loads(out.decode().splitlines()[-1])
