"""What every chapter starts from: a running server without any key, and a client in a namespace of its own."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest
from ulid import ULID

from agent_memory.foundation.core.settings import load_settings
from agent_memory_client import MemoryAPIClient, MemoryClientConfig
from tests.support.stack import stack


@pytest.fixture(scope="session")
async def server(lasting_redis_url: str) -> AsyncGenerator[str, None]:
    """The base URL of a server with a Redis, a worker and the local models."""
    settings = load_settings(KEY_PREFIX="fundamentals", MODEL_PROVIDER="local", EMBEDDING_PROVIDER="local")
    async with stack(settings, lasting_redis_url) as base_url:
        yield base_url


@pytest.fixture
async def memory(server: str) -> AsyncGenerator[MemoryAPIClient, None]:
    """A client; what one test stores is out of sight of the others."""
    config = MemoryClientConfig(base_url=server, default_namespace=f"app-{ULID()}")
    async with MemoryAPIClient(config) as client:
        yield client
