"""Test that the server only connects to configured addresses (row S6).

Addresses in requests or in responses from model servers have no effect.
"""

from __future__ import annotations

import asyncio
import re
from collections import defaultdict
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from httpx import HTTPStatusError

from agent_memory.features.access.oauth import fetch_keys
from agent_memory.foundation.core.errors import ModelUnavailable, StartupError
from agent_memory.foundation.core.settings import load_settings
from agent_memory.foundation.llm.base import ChatMessage
from agent_memory.foundation.llm.openai.chat import OpenAIChat, chat_server
from agent_memory.foundation.llm.openai.embeddings import OpenAIEmbedder, embedding_server
from agent_memory.foundation.llm.rerank import RemoteReranker
from tests.features.access.conftest import Guarded
from tests.features.access.hostile import CASES, Ids
from tests.features.access.tool_cases import TOOL_CASES


@dataclass
class Ear:
    """A server that records requests and redirects them to `location`."""

    location: str = ""
    port: int = 0
    heard: list[bytes] = field(default_factory=list[bytes])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def hear(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.heard.append(await reader.readline())
        head = await reader.readuntil(b"\r\n\r\n")
        if length := re.search(rb"content-length: (\d+)", head.lower()):
            await reader.readexactly(int(length[1]))
        writer.write(f"HTTP/1.1 307 Elsewhere\r\nLocation: {self.location}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
        await writer.drain()
        writer.close()


@asynccontextmanager
async def ear(location: str = "") -> AsyncGenerator[Ear]:
    one = Ear(location)
    server = await asyncio.start_server(one.hear, "127.0.0.1", 0)
    one.port = server.sockets[0].getsockname()[1]
    yield one
    server.close()


async def test_addresses_in_requests_are_never_called(guarded: Guarded) -> None:
    """Send the address as an id, filter, name and text to every operation and tool."""
    caller = await guarded.caller("fetcher", "admin")

    async def ask(name: str, method: str, path: str, params: dict[str, Any], body: Any) -> None:
        sent: dict[str, Any] = {"content": body} if isinstance(body, bytes) else {"json": body}
        answer = await caller.request(method, path, params=params, **sent)
        assert answer.status_code < 500, (name, answer.text)

    async with ear() as inside, asyncio.TaskGroup() as waiting:
        asked = 0
        for url in (f"{inside.url}/latest/meta-data", f"//127.0.0.1:{inside.port}/x"):
            ids = Ids(*[url] * 6, made=defaultdict(lambda url=url: url))
            for name, cases in (CASES | TOOL_CASES).items():
                for case in cases(ids):
                    if "compact" in name:
                        continue  # waits for a worker, and accepts no address
                    if name == "purge_source":  # waits for a worker, too: several seconds
                        waiting.create_task(ask(name, *case))
                    else:
                        await ask(name, *case)
                    asked += 1
        said: dict[str, Any] = {"role": "user", "content": f"see {inside.url}/a and ![x]({inside.url}/b.png)"}
        body = {"messages": [said], "data": {"webhook": f"{inside.url}/hook", "callback_url": inside.url}}
        assert (await caller.put("/v1/working-memory/urls", json=body)).status_code == 200
        assert asked > 100
    assert inside.heard == []


async def test_redirects_are_never_followed() -> None:
    async with ear() as inside, ear(f"{inside.url}/latest/meta-data") as server:
        settings = load_settings(OPENAI_BASE_URL=server.url, OPENAI_API_KEY="sk-test", RERANK_BASE_URL=server.url, EMBEDDING_DIMENSIONS=8)
        chat = await OpenAIChat.open(settings)
        embedder = await OpenAIEmbedder.open(settings)
        reranker = RemoteReranker(settings.models)
        for ask in (
            lambda: chat.text([ChatMessage("user", "hello")]),
            lambda: embedder.embed(["hello"]),
            lambda: reranker.rerank("hello", ["text"], timeout=5),
        ):
            with pytest.raises(ModelUnavailable, match="redirects elsewhere"):
                await ask()
        for jwks_url in (None, f"{server.url}/keys"):
            settings = load_settings(AUTH_MODE="oauth2", OAUTH2_ISSUER_URL=server.url, OAUTH2_JWKS_URL=jwks_url)
            with pytest.raises(HTTPStatusError, match="307"):
                await fetch_keys(settings.auth)
        for model in (chat, embedder, reranker):
            await model.close()
        assert len(server.heard) >= 4
        assert inside.heard == []


@pytest.mark.parametrize("url", ["file:///etc/passwd", "gopher://127.0.0.1", "ftp://127.0.0.1/x", "unix:///tmp/x", "http://", "data:,x"])
def test_only_http_addresses_are_accepted(url: str) -> None:
    for name, opens in (("OPENAI_BASE_URL", chat_server), ("EMBEDDING_BASE_URL", embedding_server)):
        with pytest.raises(StartupError):
            opens(load_settings(**{name: url}))
    with pytest.raises(StartupError):
        RemoteReranker(load_settings(RERANK_BASE_URL=url).models)
    with pytest.raises(StartupError):
        load_settings(AUTH_MODE="oauth2", OAUTH2_ISSUER_URL="https://issuer.example", OAUTH2_JWKS_URL=url)
