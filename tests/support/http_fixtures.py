"""Provide fixtures for the API with a fake runtime. Import them in conftest files."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import httpx
import pytest

from agent_memory.foundation.core.settings import Settings, load_settings
from agent_memory.interfaces.http.app import create_app
from tests.support.api import Recorded


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
