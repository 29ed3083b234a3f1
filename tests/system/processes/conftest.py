"""Provide one server in separate processes for tests that only send requests."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest
from ulid import ULID

from agent_memory_client import MemoryAPIClient, MemoryClientConfig
from tests.support.processes import Running, running


@pytest.fixture(scope="session")
async def served_process(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Running, None]:
    """Run `agent-memory serve` on a free port."""
    async with running(tmp_path_factory.mktemp("served"), "serve", "--port", "0", warm=True) as server:
        await server.base_url()
        yield server


@pytest.fixture(scope="session")
async def served(served_process: Running) -> str:
    return await served_process.base_url()


@pytest.fixture
async def memory(served: str) -> AsyncGenerator[MemoryAPIClient, None]:
    """Return a client with its own namespace."""
    async with MemoryAPIClient(MemoryClientConfig(base_url=served, default_namespace=f"test-{ULID()}")) as client:
        yield client
