"""Provide a rig for tests below the API, optionally behind a faulty proxy."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest

from agent_memory.foundation.core.settings import load_settings
from agent_memory.foundation.llm.base import EmbeddingModel
from agent_memory.foundation.llm.openai.chat import OpenAIChat
from agent_memory.foundation.llm.tokens import TokenCounter
from tests.support.lookalike import Lookalike
from tests.support.rig import Rig, open_rig
from tests.support.rig_fixtures import *  # noqa: F403
from tests.system.faults.proxy import Proxy

MakeChat = Callable[[], Awaitable[OpenAIChat]]
MakeProxied = Callable[..., AbstractAsyncContextManager[tuple[Rig, Proxy]]]


def through(url: str, port: int) -> str:
    """Replace the port in a Redis URL."""
    return url.replace(f":{urlsplit(url).port}/", f":{port}/")


@pytest.fixture
def make_chat(lookalike: Lookalike) -> MakeChat:
    """Create a chat client for the look-alike. The runtime closes it."""

    async def make() -> OpenAIChat:
        settings = load_settings(OPENAI_BASE_URL=lookalike.url, OPENAI_API_KEY="sk-test-0000", MODEL_TIMEOUT_SECONDS=5)
        return await OpenAIChat.open(settings)

    return make


@pytest.fixture
def make_proxied(redis_url: str, local: EmbeddingModel, counter: TokenCounter) -> MakeProxied:
    """Open a rig that reaches Redis through a proxy, and yield both."""

    @asynccontextmanager
    async def make(chat: OpenAIChat | None = None, *, url: str = redis_url, **overrides: Any) -> AsyncGenerator[tuple[Rig, Proxy]]:
        port = urlsplit(url).port
        assert port is not None
        async with Proxy(port).running() as proxy, open_rig(through(url, proxy.port), local, counter, chat, **overrides) as rig:
            try:
                yield rig, proxy
            finally:
                proxy.heal()
                # The pool must contain no broken connections when the rig cleans up.
                await rig.rt.client.connection_pool.disconnect(inuse_connections=False)

    return make
