"""Test that the audit trail records who did what.

Logs, metrics and errors contain no secrets or message contents (row S9).
"""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Generator
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
import structlog

from agent_memory.features.sessions.service import SessionService
from agent_memory.foundation.core.logs import configure_logging
from agent_memory.foundation.core.settings import load_settings
from agent_memory.interfaces.http.app import create_app
from agent_memory.runtime import open_runtime

ADMIN, MODEL_KEY, SAID = "planted-operator-0001", "sk-planted-model-0002", "planted words of ana"


@pytest.fixture
def logged(monkeypatch: pytest.MonkeyPatch) -> Generator[io.StringIO]:
    root = logging.getLogger()
    kept, level = root.handlers[:], root.level
    out = io.StringIO()
    monkeypatch.setattr("sys.stderr", out)
    server = load_settings(LOG_FORMAT="json", LOG_LEVEL="DEBUG").server
    configure_logging(server, access_log=True)
    yield out
    configure_logging(server)
    structlog.reset_defaults()
    root.handlers[:] = kept
    root.setLevel(level)


async def test_audit_log_records_who_did_what_without_secrets_or_contents(
    redis_url: str, logged: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[str, Any] = {"MODEL_PROVIDER": "openai", "OPENAI_API_KEY": MODEL_KEY, "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
    settings = load_settings(
        KEY_PREFIX="auth-audit", EMBEDDING_PROVIDER="local", AUTH_MODE="token", AUTH_ADMIN_TOKEN=ADMIN, AUDIT_LOG=True, **given
    )
    password = urlsplit(redis_url).password
    assert password
    async with open_runtime(settings, redis_url) as runtime:
        app = create_app(settings, runtime)
        transport = httpx.ASGITransport(app)
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=transport, base_url="http://localhost", headers={"x-api-key": ADMIN}) as http,
        ):
            made = (await http.post("/v1/auth/tokens", json={"users": ["ana"]})).json()
            key = {"x-api-key": made["token"]}
            message = {"role": "user", "content": SAID, "created_at": "2026-01-02T03:04:05Z"}
            put = await http.put("/v1/working-memory/s1", json={"messages": [message], "user_id": "ana"}, headers=key)
            memory = {"id": "m1", "text": SAID, "user_id": "ana"}
            wrote = await http.post("/v1/long-term-memory/", json={"memories": [memory]}, headers=key)
            found = await http.post("/v1/long-term-memory/search", json={"text": SAID, "user_id": {"eq": "ana"}}, headers=key)
            assert [put.status_code, wrote.status_code, found.status_code] == [200, 200, 200], (put.text, wrote.text, found.text)
            refused = [
                await http.get("/v1/working-memory/s1", headers={"x-api-key": made["token"] + "x"}),
                await http.get("/v1/working-memory/s1", params={"user_id": "bob"}, headers=key),
                await http.post("/v1/long-term-memory/", json={"memories": [{**memory, "topics": SAID}]}, headers=key),
                await http.put("/v1/working-memory/s1", content=SAID, headers={**key, "content-type": "application/json"}),
            ]

            async def broken(*_: object, **__: object) -> None:
                raise RuntimeError(f"no connection to redis://:{password}@host/0 with Bearer {made['token']}")

            monkeypatch.setattr(runtime[SessionService], "get", broken)
            refused.append(await http.get("/v1/working-memory/s1", params={"user_id": "ana"}, headers=key))
            assert [answer.status_code for answer in refused] == [401, 403, 422, 422, 500]
            answers = "".join(f"{answer.text} {answer.headers}" for answer in refused)
            call = {"name": "search_long_term_memory", "arguments": {"text": SAID, "namespace": "work"}}
            body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
            await http.post("/mcp", json=body, headers={"accept": "application/json, text/event-stream"})
            await http.get("/v1/long-term-memory/m1", headers=key)
            exported = (await http.post("/v1/users/ana/export", headers=key)).text.splitlines()
            await http.post("/v1/users/ana/import", content="\n".join(exported), headers={**key, "content-type": "application/x-ndjson"})
            gone = (await http.post("/v1/memory/forget", json={"ids": ["m1"]}, headers=key)).json()
            metrics = (await http.get("/metrics")).text
    lines = [json.loads(line) for line in logged.getvalue().splitlines()]
    events = [line for line in lines if line["logger"] == "audit"]
    tool, *_ = [event for event in events if event["operation"].startswith("tool ")]
    assert (tool["operation"], tool["tenant"], tool["ids"]["namespace"]) == ("tool search_long_term_memory", "default", "work")
    assert [event["status"] for event in events][:9] == [200, 200, 200, 200, 401, 403, 422, 422, 500]
    assert events[0]["ids"] == {}
    assert events[1]["ids"] == {"session_id": "s1", "user_id": "ana"}
    assert (events[2]["ids"]["memory_ids"], events[2]["ids"]["memories"]) == (["m1"], 1)
    assert events[3]["ids"] == {"user_id": {"eq": "ana"}}
    assert (events[4]["tenant"], events[4]["actor"]) == (None, None)
    # How much was read, exported and imported.
    assert "memories" in events[3]["counts"]
    assert "memories" in tool["counts"]
    read, ended, export, imported, forgot = events[-5:]
    assert (read["ids"], read["counts"]) == ({"memory_id": "m1"}, {"memories": 1})
    assert (ended["operation"], ended["actor"], ended["ids"]["user_id"]) == ("export", read["actor"], "ana")
    assert (ended["counts"]["memory"], ended["counts"]["session"]) == (1, 1)
    assert ended["ids"]["operation_id"].startswith("export-")
    assert (export["operation"], export["status"]) == ("POST /v1/users/{user_id}/export", 200)
    assert forgot["ids"] == {"ids": ["m1"], "receipt_id": gone["receipt_id"]}
    assert (imported["counts"]["present"], imported["counts"]["imported"]) == (2, 0)
    assert {event["tenant"] for event in events if event["status"] != 401} == {"default"}
    assert events[1]["actor"] == events[5]["actor"] != events[0]["actor"]
    for where in (logged.getvalue(), answers, metrics):
        for secret in (ADMIN, MODEL_KEY, password, SAID, made["token"]):
            assert secret not in where
    requests = [line for line in lines if line["logger"] == "access"]
    told = {f"{line['method']} {line['path']} {line['status']}" for line in requests}
    assert {"GET /v1/working-memory/* 401", "GET /v1/working-memory/{session_id} 500"} <= told, told
    assert all("ana" not in json.dumps(line) for line in requests)
    assert "ana" not in metrics
    assert "no connection" in logged.getvalue()
