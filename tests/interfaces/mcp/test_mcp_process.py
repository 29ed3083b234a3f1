"""Test that `agent-memory mcp` stops on a signal and prints only protocol messages."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import httpx
import pytest

from tests.support.cli import COMMAND, agent_memory, clean_environment
from tests.support.processes import running

pytestmark = pytest.mark.slow

LOCAL = {"MODEL_PROVIDER": "local", "EMBEDDING_PROVIDER": "local"}


def test_stdio_stdout_is_protocol_only_and_sigterm_ends_an_idle_process(tmp_path: Path, redis_url: str) -> None:
    environment = clean_environment(REDIS_URL=redis_url, KEY_PREFIX="mcp-stdio", LOG_LEVEL="DEBUG", **LOCAL)
    pipe = subprocess.PIPE
    with subprocess.Popen([*COMMAND, "mcp"], cwd=tmp_path, env=environment, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
            print("this is no JSON", file=process.stdin)
            print(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client}), file=process.stdin, flush=True)
            answers = [json.loads(process.stdout.readline())]
            if "result" not in answers[0]:
                answers.append(json.loads(process.stdout.readline()))
            assert answers[-1]["result"]["serverInfo"]["name"] == "agent-memory"
            process.send_signal(signal.SIGTERM)
            rest, said = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 0, said
    assert rest == ""
    assert "agent-memory speaks MCP over stdio" in said
    assert "Traceback" not in said


async def test_sigterm_ends_a_process_with_an_open_sse_stream(tmp_path: Path, redis_url: str) -> None:
    environment = {"REDIS_URL": redis_url, "KEY_PREFIX": "mcp-sse", **LOCAL}
    async with running(
        tmp_path, "mcp", "--mode", "sse", "--port", "0", "--task-backend", "docket", "--grace", "60", warm=True, **environment
    ) as process:
        url = await process.base_url()
        assert url.endswith("/sse")
        async with httpx.AsyncClient(timeout=60) as client, client.stream("GET", url) as stream:
            assert (await anext(stream.aiter_lines())).startswith("event: endpoint")
            assert await process.stop() == 0, "at once, not when the grace time is over"
        assert "Traceback" not in process.output


def test_docket_backend_requires_redis_url(tmp_path: Path) -> None:
    done = agent_memory("mcp", "--task-backend", "docket", cwd=tmp_path)
    assert done.returncode == 1
    assert "needs REDIS_URL" in done.stderr
    assert done.stdout == ""
