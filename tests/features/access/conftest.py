"""Provide an in-process server that requires credentials."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from agent_memory.foundation.core.settings import load_settings
from agent_memory.interfaces.http.app import create_app
from agent_memory.runtime import Runtime, open_runtime

ADMIN = "the-operator-of-this-server"


@dataclass
class Guarded:
    """A runtime with AUTH_MODE=token and its clients."""

    runtime: Runtime
    transport: httpx.ASGITransport
    operator: httpx.AsyncClient

    def client(self, key: str | None = None, **headers: str) -> httpx.AsyncClient:
        """Return a client that uses this API key. Do not close it."""
        sent = {"accept": "application/json, text/event-stream"} | headers | ({} if key is None else {"authorization": f"Bearer {key}"})
        return httpx.AsyncClient(transport=self.transport, base_url="http://127.0.0.1", headers=sent)

    async def key(self, tenant: str = "default", role: str = "write", **more: Any) -> dict[str, Any]:
        """Create an API key."""
        answer = await self.operator.post("/v1/auth/tokens", json={"tenant": tenant, "role": role, **more})
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def caller(self, tenant: str = "default", role: str = "write", **more: Any) -> httpx.AsyncClient:
        """Create an API key and return a client that uses it."""
        return self.client((await self.key(tenant, role, **more))["token"])


MakeGuarded = Callable[..., Awaitable[Guarded]]


@pytest.fixture(scope="module")
async def guarded(redis_url: str, request: pytest.FixtureRequest) -> AsyncGenerator[Guarded]:
    prefix = f"auth-{request.module.__name__.rpartition('.')[2]}"
    more: dict[str, Any] = getattr(request.module, "MORE_SETTINGS", {})
    models = {"MODEL_PROVIDER": "local", "EMBEDDING_PROVIDER": "local"}
    settings = load_settings(KEY_PREFIX=prefix, AUTH_MODE="token", AUTH_ADMIN_TOKEN=ADMIN, **models, **more)
    async with open_runtime(settings, redis_url) as runtime:
        app = create_app(settings, runtime)
        transport = httpx.ASGITransport(app)
        operator = httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", headers={"x-api-key": ADMIN})
        began, end = asyncio.Event(), asyncio.Event()

        async def live() -> None:
            # The task that opens an MCP connection must close it, but a fixture's two halves run in different tasks.
            async with app.router.lifespan_context(app):
                began.set()
                await end.wait()

        living = asyncio.create_task(live())
        await began.wait()
        yield Guarded(runtime, transport, operator)
        end.set()
        await living
