"""Run the API, a worker and a runtime in one process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from agent_memory.foundation.core.settings import Settings
from agent_memory.interfaces.http.app import create_app
from agent_memory.runtime import Runtime, open_runtime
from agent_memory_worker.main import run_worker
from tests.support.api import serving


@asynccontextmanager
async def working(runtime: Runtime) -> AsyncGenerator[None, None]:
    """Run a worker in this process."""
    stop = asyncio.Event()
    worker = asyncio.create_task(run_worker(runtime, runtime.settings, stop))
    try:
        yield
    finally:
        stop.set()
        await worker


@asynccontextmanager
async def stack(settings: Settings, redis_url: str) -> AsyncGenerator[str, None]:
    """Run the API and a worker, and yield the base URL."""
    async with open_runtime(settings, redis_url) as runtime, working(runtime), serving(create_app(settings, runtime)) as base_url:
        yield base_url
