"""Provide a server for the documentation tests."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest

from agent_memory.foundation.core.settings import load_settings
from tests.support.stack import stack


@pytest.fixture(scope="session")
async def documented(lasting_redis_url: str) -> AsyncGenerator[str, None]:
    """Start a server with local models and yield its URL."""
    settings = load_settings(KEY_PREFIX="docs", MODEL_PROVIDER="local", EMBEDDING_PROVIDER="local")
    async with stack(settings, lasting_redis_url) as base_url:
        yield base_url
