"""Run the archived project's clients as separate programs against a server with a worker."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

import pytest

from agent_memory.foundation.core.settings import load_settings
from tests.support.cli import ROOT, clean_environment
from tests.support.stack import stack

Report = dict[str, Any]
RunProgram = Callable[..., Awaitable[Report]]


@pytest.fixture(scope="session")
async def server(lasting_redis_url: str) -> AsyncGenerator[str, None]:
    """Start a server with a worker and yield its URL."""
    settings = load_settings(KEY_PREFIX="old-clients", MODEL_PROVIDER="local", EMBEDDING_PROVIDER="local")
    async with stack(settings, lasting_redis_url) as base_url:
        yield base_url


@pytest.fixture(scope="session")
def run_program(server: str) -> RunProgram:
    """Return a function that runs a program with the server's URL and returns its JSON report."""

    async def run(*command: str, more: tuple[str, ...] = ()) -> Report:
        process = await asyncio.create_subprocess_exec(
            *(*command, server, *more),
            cwd=ROOT,
            env=clean_environment(),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        output, problems = await process.communicate()
        assert process.returncode == 0, problems.decode()
        return json.loads(output.splitlines()[-1])

    return run
