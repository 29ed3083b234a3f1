"""Serve the API to procedure tests, which run the background work themselves."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx

from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.interfaces.http.app import create_app
from tests.support.api import serving
from tests.support.rig import Rig

START = datetime(2026, 5, 4, 9, 0, tzinfo=UTC)


class Server:
    """Serves the API of a rig over real HTTP."""

    def __init__(self, rig: Rig, http: httpx.AsyncClient) -> None:
        self.rig = rig
        self.http = http

    async def call(self, method: str, path: str, body: Any = None, status: int = 200, **params: Any) -> Any:
        """Send a request, check the status, and return the JSON response."""
        answer = await self.http.request(method, path, json=body, params={key: value for key, value in params.items() if value})
        assert answer.status_code == status, answer.text
        return answer.json()

    async def work(self) -> None:
        await self.rig.work(DueKind.ORDER)

    async def create(self, when: str, *steps: str, **more: Any) -> Any:
        """Create a procedure and embed it."""
        made = await self.call("POST", "/v1/procedures", {"when_to_use": when, "steps": list(steps) or ["do it"], **more})
        await self.work()
        return made

    async def search(self, situation: str, **more: Any) -> list[Any]:
        return (await self.call("POST", "/v1/procedures/search", {"situation": situation, **more}))["procedures"]

    async def put_session(self, session_id: str, task: str, *calls: dict[str, Any], **owner: Any) -> None:
        """Store a session with a task and tool calls (see `call_messages`)."""
        messages = [{"role": "user", "content": task, "created_at": START.isoformat()}, *call_messages(*calls)]
        await self.call("PUT", f"/v1/working-memory/{session_id}", {"messages": messages, **owner})

    async def mark(self, session_id: str, result: str, user_id: str | None = None, namespace: str | None = None, **more: Any) -> Any:
        """Set a session's result, learn from it, and return the stored result."""
        path = f"/v1/working-memory/{session_id}/result"
        await self.call("PATCH", path, {"result": result, **more}, user_id=user_id, namespace=namespace)
        await self.work()
        return await self.call("GET", f"/v1/session-results/{session_id}", user_id=user_id, namespace=namespace)


def call_messages(*calls: dict[str, Any]) -> list[dict[str, Any]]:
    """Return messages for tool calls.

    Each call has a `tool`, `arguments`, a result text `said`, and a duration `took` in seconds.
    """
    messages: list[dict[str, Any]] = []
    at = START
    for number, call in enumerate(calls):
        function = {"name": call["tool"], "arguments": json.dumps(call.get("arguments", {}))}
        tool_call = {"id": f"call-{number}", "type": "function", "function": function}
        at += timedelta(seconds=1)
        messages.append({"role": "assistant", "content": None, "tool_calls": [tool_call], "created_at": at.isoformat()})
        at += timedelta(seconds=call.get("took", 1))
        said = {"role": "tool", "tool_call_id": f"call-{number}", "content": call.get("said", "done"), "created_at": at.isoformat()}
        messages.append(said | {key: call[key] for key in ("cost", "is_error") if key in call})
    return messages


@asynccontextmanager
async def serve(rig: Rig) -> AsyncGenerator[Server]:
    async with serving(create_app(rig.settings, rig.rt)) as url, httpx.AsyncClient(base_url=url, timeout=30) as http:
        yield Server(rig, http)
