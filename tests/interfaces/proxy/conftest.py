"""Provide a server with a worker and the proxy, and a scripted model server."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import httpx
import pytest

from agent_memory.foundation.core.settings import load_settings
from tests.interfaces.proxy.upstream import Upstream, running_upstream
from tests.support.stack import stack

KEY = "sk-upstream-0000"


@dataclass
class Proxied:
    """A caller's HTTP client, the model server behind the proxy, and the test's user."""

    http: httpx.AsyncClient
    upstream: Upstream
    user: str = field(default_factory=lambda: f"ada-{uuid4()}")

    async def chat(self, messages: list[dict[str, Any]], headers: dict[str, str] | None = None, **body: Any) -> httpx.Response:
        """Call `/proxy/v1/chat/completions` for the user."""
        named = {"x-memory-user": self.user, "authorization": f"Bearer {KEY}", **(headers or {})}
        sent = [(name.encode(), value.encode()) for name, value in named.items()]
        return await self.http.post("/proxy/v1/chat/completions", json={"model": "m", "messages": messages, **body}, headers=sent)

    async def remember(self, text: str, user: str | None = None, name: str = "m") -> str:
        """Store a memory, wait until it is searchable, and return its id."""
        memory = {"id": f"{name}-{self.user}", "text": text, "user_id": user or self.user}
        made = await self.http.post("/v1/long-term-memory/", json={"memories": [memory]}, params={"wait": 20})
        assert made.status_code == 200, made.text
        return memory["id"]

    async def session(self, session_id: str, user: str | None = None) -> list[dict[str, Any]]:
        answer = await self.http.get(f"/v1/working-memory/{session_id}", params={"user_id": user or self.user})
        return answer.json()["messages"] if answer.status_code == 200 else []

    async def said(self, session_id: str, user: str | None = None) -> list[tuple[str, str]]:
        """Return the roles and texts of a session's messages."""
        return [(message["role"], message["content"]) for message in await self.session(session_id, user)]


@pytest.fixture(scope="module")
async def served(redis_url: str, request: pytest.FixtureRequest) -> AsyncGenerator[Proxied]:
    more: dict[str, Any] = getattr(request.module, "MORE_SETTINGS", {})
    async with running_upstream() as upstream:
        models = {"MODEL_PROVIDER": "local", "EMBEDDING_PROVIDER": "local"}
        prefix = f"proxy-{request.module.__name__.rpartition('.')[2]}"
        settings = load_settings(KEY_PREFIX=prefix, PROXY_UPSTREAMS=f"main={upstream.url},none=http://127.0.0.1:9/v1", **models, **more)
        async with stack(settings, redis_url) as url, httpx.AsyncClient(base_url=url, timeout=30) as http:
            yield Proxied(http, upstream)


@pytest.fixture
def proxied(served: Proxied) -> Proxied:
    served.upstream.answers.clear()
    served.upstream.received.clear()
    served.upstream.left = 0
    return Proxied(served.http, served.upstream)
