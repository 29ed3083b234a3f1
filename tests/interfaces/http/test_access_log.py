"""Test that access log lines describe requests without ids, queries, bodies or keys."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import structlog

from agent_memory.foundation.core.logs import configure_logging
from agent_memory.foundation.core.settings import load_settings
from agent_memory.interfaces.http.app import create_app
from tests.support.api import Recorded
from tests.support.processes import running

Configure = Callable[..., io.StringIO]


@pytest.fixture
def configured(monkeypatch: pytest.MonkeyPatch) -> Generator[Configure]:
    """Return a function that configures logging and returns its output stream."""
    root = logging.getLogger()
    kept, level = root.handlers[:], root.level
    out = io.StringIO()

    def configure(**given: Any) -> io.StringIO:
        monkeypatch.setattr("sys.stderr", out)
        server = load_settings(**given).server
        configure_logging(server, access_log=server.access_log)
        return out

    yield configure
    configure(ACCESS_LOG="false")
    structlog.reset_defaults()
    root.handlers[:] = kept
    root.setLevel(level)


@asynccontextmanager
async def client_of(recorded: Recorded, **given: Any) -> AsyncGenerator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(create_app(load_settings(**given), recorded.runtime))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        yield client


def told(out: io.StringIO) -> list[dict[str, Any]]:
    return [line for line in map(json.loads, out.getvalue().splitlines()) if line["logger"] == "access"]


async def test_each_request_is_one_log_line_without_ids(configured: Configure, recorded: Recorded) -> None:
    out = configured(LOG_FORMAT="json")
    async with client_of(recorded) as client:
        answer = await client.get("/v1/working-memory/monday", params={"user_id": "ada"}, headers={"x-request-id": "mine-1"})
        await client.delete("/v1/long-term-memory", params={"memory_ids": "secret"})
    first, second = told(out)
    assert answer.headers["x-request-id"] == "mine-1"
    assert {name: first[name] for name in ("event", "level", "method", "path", "status", "request_id")} == {
        "event": "request",
        "level": "info",
        "method": "GET",
        "path": "/v1/working-memory/{session_id}",
        "status": 200,
        "request_id": "mine-1",
    }
    assert first["ms"] >= 0
    assert first["timestamp"].endswith("Z")
    assert (second["method"], second["path"], len(second["request_id"])) == ("DELETE", "/v1/long-term-memory", 16)
    for word in ("monday", "ada", "secret"):
        assert word not in out.getvalue()


async def test_paths_of_pages_and_compatible_apis_are_logged(configured: Configure, recorded: Recorded) -> None:
    out = configured(LOG_FORMAT="json")
    async with client_of(recorded, COMPAT_APIS="mem0,supermemory") as client:
        for path in ("/docs", "/docs/swagger-ui.css", "/openapi.json", "/favicon.ico", "/v1/memories/secret/history/"):
            await client.get(path)
        await client.post("/v3/documents", json={"content": "x", "containerTag": "secret"})
        await client.get("/nowhere/secret")
    shown = ["/docs", "/docs/swagger-ui.css", "/openapi.json", "/favicon.ico", "/v1/memories/{memory_id}/history/", "/v3/documents"]
    assert [line["path"] for line in told(out)] == [*shown, "unmatched"]
    assert "secret" not in "".join(str(line) for line in told(out))


async def test_console_format_logs_the_request_in_the_usual_layout(configured: Configure, recorded: Recorded) -> None:
    out = configured()
    async with client_of(recorded) as client:
        await client.get("/v1/working-memory/monday", headers={"x-request-id": "mine-1"})
    (line,) = out.getvalue().splitlines()
    stamp, words = line.split(" ", 1)
    assert stamp.endswith("Z")
    assert words.startswith("[info     ] request [access] method=GET path=/v1/working-memory/{session_id} status=200 ms=")
    assert words.endswith(" request_id=mine-1")


@pytest.mark.parametrize("given", [{"ACCESS_LOG": "false"}, {"LOG_LEVEL": "WARNING"}], ids=["off", "only warnings"])
async def test_access_log_can_be_switched_off(given: dict[str, str], configured: Configure, recorded: Recorded) -> None:
    out = configured(**given)
    async with client_of(recorded) as client:
        await client.get("/v1/working-memory/monday")
    assert out.getvalue() == ""


@pytest.mark.parametrize(("level", "lines"), [("INFO", 0), ("DEBUG", 3)])
async def test_health_and_metrics_requests_are_logged_at_debug_only(
    level: str, lines: int, configured: Configure, recorded: Recorded
) -> None:
    out = configured(LOG_FORMAT="json", LOG_LEVEL=level)
    async with client_of(recorded) as client:
        for path in ("/v1/health", "/v1/ready", "/metrics"):
            assert (await client.get(path)).status_code == 200
    assert len(told(out)) == lines


async def test_refused_and_failed_requests_are_logged_without_ids(configured: Configure, recorded: Recorded) -> None:
    out = configured(LOG_FORMAT="json")
    recorded.answers["working.get"] = RuntimeError("no")
    async with client_of(recorded) as client:
        await client.get("/v1/working-memory/monday")
        await client.get("/some/where/else")
    async with client_of(recorded, AUTH_MODE="token") as client:
        await client.get("/v1/working-memory/monday")
        await client.get("/v1/MONDAY/x")
    lines = [(line["method"], line["path"], line["status"]) for line in told(out)]
    assert lines == [
        ("GET", "/v1/working-memory/{session_id}", 500),
        ("GET", "unmatched", 404),
        ("GET", "/v1/working-memory/*", 401),
        ("GET", "unmatched", 401),
    ]
    assert "monday" not in json.dumps(told(out)).lower()


@pytest.mark.parametrize("sent", ["a b", 'a"b', "a\\nb", "x" * 129, ""])
async def test_unsafe_request_id_is_replaced(sent: str, configured: Configure, recorded: Recorded) -> None:
    out = configured(LOG_FORMAT="json")
    async with client_of(recorded) as client:
        answer = await client.get("/v1/working-memory/monday", headers={"x-request-id": sent})
    assert told(out)[0]["request_id"] == answer.headers["x-request-id"] != sent


@pytest.mark.parametrize(("setting", "lines"), [("true", 1), ("false", 0)])
async def test_serve_writes_access_log_unless_disabled(setting: str, lines: int, tmp_path: Path) -> None:
    given = {"MODEL_PROVIDER": "local", "EMBEDDING_PROVIDER": "local", "LOG_FORMAT": "json", "ACCESS_LOG": setting}
    async with running(tmp_path, "serve", "--port", "0", warm=True, **given) as server, httpx.AsyncClient() as client:
        url = await server.base_url()
        await client.get(f"{url}/v1/working-memory/monday?user_id=ada")
        await server.stop()
    assert server.output.count('"event": "request"') == lines
    assert "user_id=ada" not in server.output
