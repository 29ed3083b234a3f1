"""Provide a server without API keys, and a client with its own namespace."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest
from ulid import ULID

from agent_memory.foundation.core.settings import load_settings
from agent_memory_client import MemoryAPIClient, MemoryClientConfig
from tests.support.stack import stack


@pytest.fixture(scope="session")
async def server(lasting_redis_url: str) -> AsyncGenerator[str, None]:
    """Start a server with a worker and local models, and yield its URL."""
    settings = load_settings(KEY_PREFIX="fundamentals", MODEL_PROVIDER="local", EMBEDDING_PROVIDER="local")
    async with stack(settings, lasting_redis_url) as base_url:
        yield base_url


@pytest.fixture
async def memory(server: str) -> AsyncGenerator[MemoryAPIClient, None]:
    """Provide a client with its own namespace, so that tests do not share data."""
    config = MemoryClientConfig(base_url=server, default_namespace=f"app-{ULID()}")
    async with MemoryAPIClient(config) as client:
        yield client
