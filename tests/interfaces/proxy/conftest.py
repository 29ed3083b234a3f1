"""A server with a worker and the proxy, beside a scripted model server."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from agent_memory.foundation.core.settings import Settings
from tests.support.stack import stack
from tests.support.upstream import Upstream, running_upstream

KEY = "sk-upstream-0000"


@dataclass
class Proxied:
    """What a test needs: the HTTP client of a caller, and the model server behind the proxy."""

    http: httpx.AsyncClient
    upstream: Upstream

    async def chat(self, messages: list[dict[str, Any]], headers: dict[str, str] | None = None, **body: Any) -> httpx.Response:
        """Call `/proxy/v1/chat/completions` for Ada."""
        named = {"x-memory-user": "ada", "authorization": f"Bearer {KEY}", **(headers or {})}
        return await self.http.post("/proxy/v1/chat/completions", json={"model": "m", "messages": messages, **body}, headers=named)

    async def remember(self, text: str, user: str = "ada") -> str:
        """Store a memory; return its id when a search finds it."""
        made = await self.http.post("/v1/long-term-memory/", json={"memories": [{"id": f"m-{user}", "text": text, "user_id": user}]}, params={"wait": 20})
        assert made.status_code == 200, made.text
        return f"m-{user}"

    async def session(self, session_id: str, user: str = "ada") -> list[dict[str, Any]]:
        answer = await self.http.get(f"/v1/working-memory/{session_id}", params={"user_id": user})
        return answer.json()["messages"] if answer.status_code == 200 else []

    async def said(self, session_id: str, user: str = "ada") -> list[tuple[str, str]]:
        """The roles and texts of a session's messages."""
        return [(message["role"], message["content"]) for message in await self.session(session_id, user)]


@pytest.fixture
async def upstream() -> AsyncGenerator[Upstream]:
    async with running_upstream() as running:
        yield running


@pytest.fixture
async def proxied(make_settings: Callable[..., Settings], redis_url: str, upstream: Upstream) -> AsyncGenerator[Proxied]:
    settings = make_settings(PROXY_UPSTREAMS=f"main={upstream.url}")
    async with stack(settings, redis_url) as url, httpx.AsyncClient(base_url=url, timeout=30) as http:
        yield Proxied(http, upstream)
