"""Test that an unsuitable Redis causes one clear error line and an exit code."""

from __future__ import annotations

import subprocess
from collections.abc import AsyncGenerator, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agent_memory.foundation.embedded.engine import find_engine
from tests.support.cli import agent_memory, unwrapped
from tests.support.waiting import wait_until


@contextmanager
def spawned(*command: str, cwd: Path) -> Generator[None, None, None]:
    process = subprocess.Popen(command, cwd=cwd, stdout=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.terminate()
        process.wait()


@pytest.fixture
async def plain_redis(tmp_path: Path) -> AsyncGenerator[str, None]:
    """Start a redis-server without the query engine, and yield its URL."""
    socket = tmp_path / "r.sock"
    engine = await find_engine(tmp_path)
    with spawned(engine.server, "--port", "0", "--unixsocket", str(socket), "--save", "", cwd=tmp_path):

        async def listens() -> bool:
            return socket.exists()

        await wait_until(listens, "a plain redis-server")
        yield f"unix://{socket}"


@pytest.mark.parametrize("command", ["serve", "api", "worker"])
async def test_redis_without_query_engine_is_refused_in_one_message(command: str, plain_redis: str, tmp_path: Path) -> None:
    options = [] if command == "worker" else ["--port", "0"]
    result = agent_memory(command, *options, cwd=tmp_path, REDIS_URL=plain_redis)

    assert result.returncode == 1
    assert result.stdout == ""
    assert result.stderr.count("agent-memory: ") == 1, result.stderr
    assert "has no query engine" in unwrapped(result.stderr)
