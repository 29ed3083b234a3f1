"""Replay public recordings of requests from Claude Code, VS Code and Cursor."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.interfaces.mcp.conftest import Server

RECORDED: list[dict[str, Any]] = json.loads(Path(__file__).with_name("recorded_clients.json").read_text("utf-8"))


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda recorded: recorded["client"])
async def test_recorded_client_connects_and_calls_a_tool(server: Server, recorded: dict[str, Any]) -> None:
    headers = {"accept": "application/json, text/event-stream", "content-type": "application/json"} | recorded["headers"]

    async def send(message: dict[str, Any]) -> dict[str, Any]:
        answer = await server.rest.post("/mcp", json=message, headers=headers)
        assert answer.status_code in (200, 202), answer.text
        text = answer.text
        if answer.headers.get("content-type", "").startswith("text/event-stream"):
            text = next(line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: {"))
        return json.loads(text)["result"] if text else {}

    version = recorded["initialize"]["params"]["protocolVersion"]
    began = await send(recorded["initialize"])
    assert (began["protocolVersion"], began["serverInfo"]["name"]) == (version, "agent-memory")
    headers["mcp-protocol-version"] = version
    assert await send({"method": "notifications/initialized", "jsonrpc": "2.0"}) == {}
    assert len((await send({"method": "tools/list", "jsonrpc": "2.0", "id": 1}))["tools"]) > 20
    meta = {"_meta": recorded["call_meta"]} if recorded["call_meta"] else {}
    params = {"name": "get_current_datetime", "arguments": {}, **meta}
    called = await send({"method": "tools/call", "params": params, "jsonrpc": "2.0", "id": 4})
    assert not called.get("isError")
    assert (await send({"method": "resources/read", "params": {"uri": "memory://ada/profile"}, "jsonrpc": "2.0", "id": 5}))["contents"]
