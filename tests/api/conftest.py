"""The API over recorded answers, called in process, and over the real runtime, called through HTTP."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import httpx
import pytest

from agent_memory.core.settings import Settings, load_settings
from agent_memory.http.app import create_app
from agent_memory.runtime import open_runtime
from tests.support.api import Recorded, serving
from tests.support.stack import stack


@pytest.fixture
def api_settings() -> Settings:
    return load_settings(MAX_BODY_BYTES=64 * 1024, REQUEST_TIMEOUT_SECONDS=5)


@pytest.fixture
def recorded() -> Recorded:
    return Recorded()


@pytest.fixture
async def api(api_settings: Settings, recorded: Recorded) -> AsyncGenerator[httpx.AsyncClient, None]:
    transport = httpx.ASGITransport(create_app(api_settings, recorded.runtime))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        yield client


@pytest.fixture(scope="session")
async def live_url(redis_url: str) -> AsyncGenerator[str, None]:
    """The base URL of the real thing: the API over the real runtime, on a loopback port."""
    settings = load_settings(KEY_PREFIX="api-tests", MODEL_PROVIDER="local", EMBEDDING_PROVIDER="local")
    async with open_runtime(settings, redis_url) as runtime, serving(create_app(settings, runtime)) as url:
        yield url


@pytest.fixture(scope="session")
async def live(live_url: str) -> AsyncGenerator[httpx.AsyncClient, None]:
    """A client of the real thing."""
    async with httpx.AsyncClient(base_url=live_url, timeout=30) as client:
        yield client


@pytest.fixture(scope="session")
async def worked(redis_url: str) -> AsyncGenerator[httpx.AsyncClient, None]:
    """A client of the real thing with a worker beside it."""
    settings = load_settings(KEY_PREFIX="api-worked", MODEL_PROVIDER="local", EMBEDDING_PROVIDER="local")
    async with stack(settings, redis_url) as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        yield client
