"""Provide a real server with REST, MCP and a worker, and a separate SSE application."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass

import httpx
import pytest
from fastapi import FastAPI

from agent_memory.foundation.core.settings import load_settings
from agent_memory.interfaces.http.app import create_app, create_mcp_app
from agent_memory.runtime import open_runtime
from agent_memory_worker.main import run_worker
from tests.support.api import serving

PREFIX = "mcp-tests"


@dataclass(frozen=True)
class Server:
    """The server's addresses and REST client. `url` serves REST and streamable HTTP."""

    url: str
    sse_url: str
    sse_app: FastAPI
    rest: httpx.AsyncClient
    redis_url: str


@pytest.fixture(scope="session")
async def server(lasting_redis_url: str) -> AsyncGenerator[Server, None]:
    settings = load_settings(KEY_PREFIX=PREFIX, MODEL_PROVIDER="local", EMBEDDING_PROVIDER="local", REQUEST_TIMEOUT_SECONDS=20)
    async with open_runtime(settings, lasting_redis_url) as runtime:
        stop = asyncio.Event()
        worker = asyncio.create_task(run_worker(runtime, settings, stop))
        sse_app = create_mcp_app(settings, runtime, "sse")
        try:
            async with (
                serving(create_app(settings, runtime)) as url,
                serving(sse_app) as sse_url,
                httpx.AsyncClient(base_url=url, timeout=30) as rest,
            ):
                yield Server(url, sse_url, sse_app, rest, lasting_redis_url)
        finally:
            stop.set()
            await worker
