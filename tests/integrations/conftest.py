"""Provide a real server and a scripted model server for the framework tests."""

from __future__ import annotations

import json
import os
import re
import subprocess
import threading
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

from agent_memory_client import MemoryClient, MemoryClientConfig
from agent_memory_client.sync import SyncMemoryClient

ROOT = Path(__file__).resolve().parents[2]
# Tests send nothing to other machines.
os.environ |= {
    "ANONYMIZED_TELEMETRY": "False",
    "CREWAI_DISABLE_TELEMETRY": "true",
    "CREWAI_DISABLE_TRACKING": "true",
    "CREWAI_TESTING": "true",
    "HAYSTACK_TELEMETRY_ENABLED": "False",
    "LANGCHAIN_TRACING_V2": "false",
    "LANGSMITH_TRACING": "false",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "OPENAI_AGENTS_DISABLE_TRACING": "1",
    "OTEL_SDK_DISABLED": "true",
}


@pytest.fixture(scope="session")
def server_url(tmp_path_factory: pytest.TempPathFactory, running_model: ModelServer) -> Generator[str]:
    """Start one `agent-memory serve` for all tests. Its proxy calls the model server."""
    with started_server(tmp_path_factory.mktemp("server"), PROXY_UPSTREAMS=f"main={running_model.url}") as url:
        yield url


@contextmanager
def started_server(folder: Path, **settings: str) -> Generator[str]:
    """Start `agent-memory serve` with its data in `folder`, and yield its URL."""
    log = folder / "log"
    keep = ("PATH", "HOME", "TMPDIR", "LANG", "TZ")
    environment = {name: os.environ[name] for name in keep if name in os.environ}
    environment |= {"MODEL_PROVIDER": "local", "COMPAT_APIS": "supermemory,mem0", **settings}
    command = [str(ROOT / ".venv/bin/agent-memory"), "serve", "--port", "0", "--data-dir", str(folder / "data")]
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, cwd=folder, env=environment)
    try:
        deadline = time.monotonic() + 100
        while not (listening := re.search(r"agent-memory listens on (\S+)", log.read_text("utf-8", "replace"))):
            assert process.poll() is None, log.read_text("utf-8", "replace")
            assert time.monotonic() < deadline, log.read_text("utf-8", "replace")
            time.sleep(0.1)
        yield listening[1]
    finally:
        process.terminate()
        process.wait(60)


@pytest.fixture
async def client(server_url: str) -> AsyncGenerator[MemoryClient]:
    async with MemoryClient(MemoryClientConfig(base_url=server_url)) as opened:
        yield opened


@pytest.fixture
def blocking(server_url: str) -> Generator[SyncMemoryClient]:
    with SyncMemoryClient(MemoryClientConfig(base_url=server_url)) as opened:
        yield opened


async def mcp_tools(server_url: str) -> list[dict[str, Any]]:
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    async with httpx.AsyncClient(base_url=server_url, headers={"accept": "application/json, text/event-stream"}) as http:
        answer = await http.post("/mcp", json=request)
    return answer.raise_for_status().json()["result"]["tools"]


NOBODY = MemoryClientConfig(base_url="http://127.0.0.1:9", timeout=2)
"""An address without a server."""


@dataclass
class ModelServer:
    """A fake OpenAI chat server that plays back a script and records requests."""

    url: str = ""
    script: list[str | dict[str, Any]] = field(default_factory=list)
    asked: list[dict[str, Any]] = field(default_factory=list)

    def answer(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return the next response from the script, or "ok" if the script is empty.

        A script contains texts and tool calls in the form {"name": …, "arguments": {…}}.
        """
        self.asked.append(body)
        step = self.script.pop(0) if self.script else "ok"
        message: dict[str, Any] = {"role": "assistant", "content": step if isinstance(step, str) else None}
        if isinstance(step, dict):
            function = {"name": step["name"], "arguments": json.dumps(step["arguments"])}
            message["tool_calls"] = [{"id": f"call_{len(self.asked)}", "type": "function", "function": function}]
        choice = {"index": 0, "finish_reason": "stop" if isinstance(step, str) else "tool_calls", "message": message}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        return {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}


@pytest.fixture(scope="session")
def running_model() -> Generator[ModelServer]:
    state = ModelServer()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            whole = state.answer(body)
            kind, answer = "application/json", json.dumps(whole).encode()
            if body.get("stream"):
                choice = {**whole["choices"][0], "delta": whole["choices"][0]["message"]}
                chunk = json.dumps({**whole, "object": "chat.completion.chunk", "choices": [choice]}).encode()
                kind, answer = "text/event-stream", b"data: %s\n\ndata: [DONE]\n\n" % chunk
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    state.url = f"http://127.0.0.1:{server.server_port}/v1"
    yield state
    server.shutdown()


@pytest.fixture
def model(running_model: ModelServer, monkeypatch: pytest.MonkeyPatch) -> ModelServer:
    """Clear the model server's script, and point OpenAI's environment variables to it."""
    running_model.script.clear()
    running_model.asked.clear()
    monkeypatch.setenv("OPENAI_BASE_URL", running_model.url)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0000")
    return running_model
