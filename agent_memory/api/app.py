"""The composition of the HTTP face: settings and a runtime in, an ASGI application out."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from fastapi import FastAPI

from agent_memory import __version__
from agent_memory.api import errors
from agent_memory.api.admission import Admission
from agent_memory.api.authentication import Authentication
from agent_memory.api.middleware import Edge
from agent_memory.api.routes import ROUTERS
from agent_memory.errors import StartupError
from agent_memory.runtime import Runtime, open_runtime
from agent_memory.settings import Settings

DESCRIPTION = """The self-hosted memory server for AI agents: working memory per session, long-term memory across sessions.

A path may be written with or without a trailing slash. Times go out in UTC; naive times are read as UTC, numbers as epoch seconds.
Errors are JSON: `detail` says what is wrong and how to put it right, `code` is a stable word for programs."""


def create_app(settings: Settings, runtime: Runtime | None = None) -> FastAPI:
    """The application. With a `runtime` it uses that one and leaves it open; without, its lifespan opens and closes one.

    Raises StartupError at start when there is neither a runtime nor a `REDIS_URL`.
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
        if app.state.runtime is not None:
            yield
            return
        if settings.redis.url is None:
            raise StartupError("REDIS_URL is not set: give the address of a Redis with the query engine")
        async with open_runtime(settings, settings.redis.url.get_secret_value()) as opened:
            app.state.runtime = opened
            try:
                yield
            finally:
                app.state.runtime = None

    app = FastAPI(
        title="agent-memory",
        version=__version__,
        description=DESCRIPTION,
        lifespan=lifespan,
        redirect_slashes=False,
        docs_url="/docs" if settings.server.docs else None,
        redoc_url="/redoc" if settings.server.docs else None,
        openapi_url="/openapi.json" if settings.server.docs else None,
        # Asked for anew in every request, and Edge measures already.
        telemetry={"tracing": False, "metrics": False, "logs": False},
    )
    app.state.runtime = runtime
    app.state.settings = settings
    app.state.max_body_bytes = settings.server.max_body_bytes
    errors.install(app)
    if settings.auth.required:
        app.add_middleware(Authentication, gate=lambda: None if app.state.runtime is None else app.state.runtime.gate)
    # Within Edge, so that a refusal has its id and is counted, too.
    app.add_middleware(Admission, most=settings.server.max_concurrent_requests)
    app.add_middleware(Edge, timeout=settings.server.request_timeout_seconds)
    # Not include_router, which matches every path twice; and before the routes of the documentation, since the order is that of matching.
    app.router.routes[:0] = [route for router in ROUTERS for route in router.routes]
    return app
