"""Provide an HTTP server for the memory block tests. Each test uses its own users and agents."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import httpx
import pytest
from ulid import ULID

from agent_memory.foundation.core.settings import load_settings
from agent_memory.interfaces.http.app import create_app
from agent_memory.runtime import Runtime, open_runtime
from tests.support.api import serving


class Api:
    """Calls the block operations for one owner."""

    def __init__(self, http: httpx.AsyncClient, owner: dict[str, str]) -> None:
        self.http = http
        self.owner = owner

    def of(self, **owner: str) -> Api:
        """Return an API for another owner on the same server."""
        return Api(self.http, owner)

    async def call(self, method: str, path: str, body: Any = None, *, status: int = 200, **headers: str) -> Any:
        """Send a request, check the status, and return the JSON response."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        answer = await self.http.request(method, f"/v1/blocks{path}", params=self.owner, json=body, headers=sent)
        assert answer.status_code == status, answer.text
        return answer.json()

    async def put(self, label: str, value: str | None = None, **more: Any) -> dict[str, Any]:
        body = more | ({} if value is None else {"value": value})
        return (await self.call("PUT", f"/{label}", body))["block"]

    async def edit(self, label: str, operation: str, content: str, *, status: int = 200, **more: Any) -> Any:
        return await self.call("PATCH", f"/{label}", {"operation": operation, "content": content, **more}, status=status)

    async def value(self, label: str) -> str:
        return (await self.call("GET", f"/{label}"))["value"]

    async def prompt(self, query: str = "What?", **body: Any) -> list[str]:
        answer = await self.http.post("/v1/memory/prompt", json={"query": query, "long_term_search": True, **body})
        assert answer.status_code == 200, answer.text
        return [message["content"]["text"] for message in answer.json()["messages"]]


@pytest.fixture(scope="module")
async def runtime(redis_url: str) -> AsyncGenerator[Runtime]:
    settings = load_settings(KEY_PREFIX=f"t{str(ULID()).lower()}", MODEL_PROVIDER="local", EMBEDDING_PROVIDER="local")
    async with open_runtime(settings, redis_url) as runtime:
        yield runtime


@pytest.fixture(scope="module")
async def server(runtime: Runtime) -> AsyncGenerator[httpx.AsyncClient]:
    async with serving(create_app(runtime.settings, runtime)) as url, httpx.AsyncClient(base_url=url, timeout=30) as http:
        yield http


@pytest.fixture
def api(server: httpx.AsyncClient) -> Api:
    """Call the block operations as a new user."""
    return Api(server, {"user_id": f"u{ULID()}"})
