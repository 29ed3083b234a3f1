"""One server of its own processes, without any key, for the tests that only talk to it."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest
from ulid import ULID

from agent_memory_client import MemoryAPIClient, MemoryClientConfig
from tests.support.processes import Running, running


@pytest.fixture(scope="session")
async def served_process(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Running, None]:
    """`agent-memory serve` on a free port."""
    async with running(tmp_path_factory.mktemp("served"), "serve", "--port", "0", warm=True) as server:
        await server.base_url()
        yield server


@pytest.fixture(scope="session")
async def served(served_process: Running) -> str:
    """Its base URL."""
    return await served_process.base_url()


@pytest.fixture
async def memory(served: str) -> AsyncGenerator[MemoryAPIClient, None]:
    """A client of that server in a namespace of its own."""
    async with MemoryAPIClient(MemoryClientConfig(base_url=served, default_namespace=f"test-{ULID()}")) as client:
        yield client
