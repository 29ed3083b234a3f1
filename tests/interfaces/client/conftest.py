"""Provide a real server, and a common interface for both clients."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import Any, cast

import pytest
from ulid import ULID

from agent_memory.foundation.core.settings import load_settings
from agent_memory.interfaces.http.app import create_app
from agent_memory.runtime import Runtime, open_runtime
from agent_memory_client import MemoryAPIClient, MemoryClientConfig, SyncMemoryAPIClient
from agent_memory_client.models import MemoryRecordResult
from tests.support.api import serving
from tests.support.stack import stack

MakeClient = Callable[[str], MemoryAPIClient]


class Blocking:
    """Wraps the synchronous client in an asynchronous interface."""

    def __init__(self, client: SyncMemoryAPIClient) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._client, name)

        async def call(*arguments: Any, **keywords: Any) -> Any:
            return await asyncio.to_thread(found, *arguments, **keywords)

        return call if callable(found) and not isinstance(found, type) else found

    async def search_all_long_term_memories(self, *arguments: Any, **keywords: Any) -> AsyncIterator[MemoryRecordResult]:
        for memory in await asyncio.to_thread(lambda: list(self._client.search_all_long_term_memories(*arguments, **keywords))):
            yield memory


def opened(kind: str, config: MemoryClientConfig) -> MemoryAPIClient:
    """Open a synchronous or asynchronous client with the same interface."""
    return cast("MemoryAPIClient", Blocking(SyncMemoryAPIClient(config))) if kind == "sync" else MemoryAPIClient(config)


@pytest.fixture(scope="session")
async def server(lasting_redis_url: str) -> AsyncGenerator[str, None]:
    """Start a server with a worker and local models, and yield its URL."""
    settings = load_settings(KEY_PREFIX="client-live", MODEL_PROVIDER="local", EMBEDDING_PROVIDER="local")
    async with stack(settings, lasting_redis_url) as base_url:
        yield base_url


@pytest.fixture(params=["async", "sync"])
async def memory(server: str, request: pytest.FixtureRequest) -> AsyncGenerator[MemoryAPIClient, None]:
    """Return a client with its own namespace."""
    client = opened(request.param, MemoryClientConfig(base_url=server, default_namespace=f"app-{ULID()}"))
    yield client
    await client.close()


@pytest.fixture(scope="session")
async def idle(lasting_redis_url: str) -> AsyncGenerator[tuple[str, Runtime], None]:
    """Start a server without a worker, so that work stays pending."""
    settings = load_settings(KEY_PREFIX="client-idle", MODEL_PROVIDER="local", EMBEDDING_PROVIDER="local")
    async with open_runtime(settings, lasting_redis_url) as runtime, serving(create_app(settings, runtime)) as url:
        yield url, runtime


@pytest.fixture(params=["async", "sync"])
async def waiting(idle: tuple[str, Runtime], request: pytest.FixtureRequest) -> AsyncGenerator[tuple[MemoryAPIClient, Runtime], None]:
    """Connect a client to the server that has no worker."""
    url, runtime = idle
    client = opened(request.param, MemoryClientConfig(base_url=url, default_namespace=f"app-{ULID()}"))
    yield client, runtime
    await client.close()
