"""The composition of the HTTP face: settings and a runtime in, an ASGI application out."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from fastapi.middleware.asyncexitstack import AsyncExitStackMiddleware
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from agent_memory import __version__
from agent_memory.api import documentation, errors
from agent_memory.api.admission import Admission
from agent_memory.api.auditing import Auditing
from agent_memory.api.authentication import Authentication, describe
from agent_memory.api.deps import scope_of
from agent_memory.api.hosts import HostCheck, allowed_names
from agent_memory.api.lane import Lane
from agent_memory.api.limiting import Limiting
from agent_memory.api.middleware import Edge
from agent_memory.api.resource import challenge_of, metadata_routes
from agent_memory.api.routes import ROUTERS, ops
from agent_memory.api.turnstile import Turnstile
from agent_memory.errors import StartupError
from agent_memory.mcp.door import McpDoor
from agent_memory.runtime import Runtime, open_runtime
from agent_memory.settings import Settings

DESCRIPTION = """The self-hosted memory server for AI agents: working memory per session, long-term memory across sessions.

A path may be written with or without a trailing slash. Times go out in UTC; naive times are read as UTC, numbers as epoch seconds.
Errors are JSON: `detail` says what is wrong and how to put it right, `code` is a stable word for programs."""

if TYPE_CHECKING:
    from agent_memory.mcp.http import McpHttp, Transport

# What a page of another origin may read of an answer, beside its body.
_EXPOSED = ("ETag", "Retry-After", "X-Request-Id", "X-Operation-Id", "X-Pending", "X-Ignored-Fields")


class _App(FastAPI):
    """FastAPI, whose document also says who must send credentials, what fields mean, and what to send.

    Its operations are run by a `Lane` before its router.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """As Starlette's: FastAPI's asks at each request whether there is telemetry, and a layer of it listens for errors."""
        scope["app"] = self
        if self.middleware_stack is None:
            self.middleware_stack = self.build_middleware_stack()
        await self.middleware_stack(scope, receive, send)

    def build_middleware_stack(self) -> ASGIApp:
        """Our layers around the operations; whatever is none goes on through the router. `Edge` answers for what nobody expected."""
        router = ExceptionMiddleware(AsyncExitStackMiddleware(self.router), self.exception_handlers)
        app: ASGIApp = Lane(self.routes, router, self.exception_handlers)
        for layer, args, kwargs in reversed(self.user_middleware):
            app = layer(app, *args, **kwargs)
        return app

    def openapi(self) -> dict[str, Any]:
        made = self.openapi_schema is not None
        document = super().openapi()
        if not made:
            # Of use to nobody but a reader of the document: a start does not wait for them.
            from agent_memory.api.descriptions import describe_fields
            from agent_memory.api.examples import add_examples

            describe(document, required=self.state.settings.auth.required)
            describe_fields(document)
            add_examples(document)
        return document


def create_app(settings: Settings, runtime: Runtime | None = None) -> FastAPI:
    """The application. With a `runtime` it uses that one and leaves it open; without, its lifespan opens and closes one.

    Raises StartupError at start when there is neither a runtime nor a `REDIS_URL`.
    """
    mcp = McpDoor(settings, scope_of, host=settings.server.host) if settings.mcp.on_api else None
    # Not include_router, which matches every path twice.
    return _assembled(settings, runtime, [route for router in ROUTERS for route in router.routes], mcp, host=settings.server.host)


def create_mcp_app(settings: Settings, runtime: Runtime, transport: Transport) -> FastAPI:
    """An application for MCP alone, beside what those who run it ask for: /v1/health, /v1/ready, /metrics. `state.mcp` has its streams."""
    from agent_memory.mcp.http import McpHttp

    mcp = McpHttp(settings, scope_of, [transport], host=settings.mcp.host)
    return _assembled(settings, runtime, ops.router.routes, mcp, host=settings.mcp.host)


def _assembled(
    settings: Settings, runtime: Runtime | None, routes: Sequence[BaseRoute], mcp: McpHttp | McpDoor | None, *, host: str
) -> FastAPI:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
        async with AsyncExitStack() as stack:
            if app.state.runtime is None:
                if settings.redis.url is None:
                    raise StartupError("REDIS_URL is not set: give the address of a Redis with the query engine")
                opened = await stack.enter_async_context(open_runtime(settings, settings.redis.url.get_secret_value()))
                app.state.runtime = opened
                stack.callback(setattr, app.state, "runtime", None)
            if mcp is not None:
                await stack.enter_async_context(mcp.running(app.state.runtime))
            yield

    app = _App(
        title="agent-memory",
        version=__version__,
        description=DESCRIPTION,
        lifespan=lifespan,
        redirect_slashes=False,
        docs_url=None,  # its pages come with a content policy
        redoc_url=None,
        openapi_url="/openapi.json" if settings.server.docs else None,
        # Asked for anew in every request, and Edge measures already.
        telemetry={"tracing": False, "metrics": False, "logs": False},
    )
    app.state.runtime = runtime
    app.state.settings = settings
    app.state.mcp = mcp
    app.state.max_body_bytes = settings.server.max_body_bytes
    errors.install(app)
    if settings.limits.some("requests_per_minute"):
        app.add_middleware(
            Limiting,
            limit=lambda: None if app.state.runtime is None else app.state.runtime.request_limit,
            required=settings.auth.required,
        )
    if settings.auth.required:
        app.add_middleware(
            Authentication,
            gate=lambda: None if app.state.runtime is None else app.state.runtime.gate,
            challenge=partial(challenge_of, settings),
        )
    # Within Edge, so that a refusal has its id and is counted, too.
    app.add_middleware(Admission, most=settings.server.max_concurrent_requests, fair=settings.auth.required)
    if settings.auth.required or settings.limits.some("requests_per_minute"):
        app.add_middleware(
            Turnstile,
            gate=lambda: None if app.state.runtime is None else app.state.runtime.gate,
            limit=lambda: None if app.state.runtime is None else app.state.runtime.request_limit,
            required=settings.auth.required,
        )
    if settings.server.audit_log:
        app.add_middleware(Auditing, required=settings.auth.required)
    origins = [origin for part in settings.server.cors_allowed_origins.split(",") if (origin := part.strip())]
    names = allowed_names(settings, host)
    if names is not None or not settings.auth.required:
        app.add_middleware(HostCheck, names=names, origins=frozenset(origins))
    if origins:
        # Before credentials are asked for: browsers send none with the question whether they may ask.
        app.add_middleware(CORSMiddleware, allow_origins=origins, allow_methods=["*"], allow_headers=["*"], expose_headers=_EXPOSED)
    app.add_middleware(Edge, timeout=settings.server.request_timeout_seconds)
    if settings.server.docs:
        app.router.routes += documentation.pages(app.title, "/openapi.json")
    # Before the routes of the documentation, since the order is that of matching.
    app.router.routes[:0] = [*routes, *metadata_routes(settings), *(mcp.routes if mcp is not None else ())]
    return app
