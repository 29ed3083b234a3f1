"""Build the HTTP application from the settings and a runtime."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.routing import BaseRoute
from starlette.types import ASGIApp

from agent_memory import __version__
from agent_memory.features.access.credentials import Authenticator, CredentialGate
from agent_memory.features.access.limits import RequestLimit
from agent_memory.foundation.api import errors
from agent_memory.foundation.api.operation import OperationRouter
from agent_memory.foundation.core.errors import StartupError
from agent_memory.foundation.core.settings import Settings
from agent_memory.interfaces.console.live import LiveStreams
from agent_memory.interfaces.console.paths import BASE
from agent_memory.interfaces.console.routes import console_routes
from agent_memory.interfaces.http import health
from agent_memory.interfaces.http.document import pages
from agent_memory.interfaces.http.middleware.acting_user import ActingUserMiddleware
from agent_memory.interfaces.http.middleware.admission import AdmissionMiddleware
from agent_memory.interfaces.http.middleware.auditing import AuditMiddleware
from agent_memory.interfaces.http.middleware.authentication import AuthenticationMiddleware, describe
from agent_memory.interfaces.http.middleware.body_deadline import BodyDeadlineMiddleware
from agent_memory.interfaces.http.middleware.hosts_and_origins import HostMiddleware, allowed_names
from agent_memory.interfaces.http.middleware.known_caller import KnownCallerMiddleware
from agent_memory.interfaces.http.middleware.rate_limit import RateLimitMiddleware
from agent_memory.interfaces.http.middleware.request import RequestMiddleware
from agent_memory.interfaces.http.middleware.token_scheme import TokenSchemeMiddleware
from agent_memory.interfaces.http.protected_resource import challenge_of, metadata_routes, provider_metadata
from agent_memory.interfaces.http.routes import ROUTERS
from agent_memory.interfaces.http.unserved_apis import UnservedRoutes, find_compatible_apis
from agent_memory.interfaces.mcp.lazy import McpDoor
from agent_memory.interfaces.proxy.authorization import PREFIX, UpstreamAuthorizationMiddleware
from agent_memory.interfaces.proxy.routes import ModelProxy
from agent_memory.interfaces.proxy.upstreams import MOST_CALLS
from agent_memory.runtime import Runtime, open_runtime

DESCRIPTION = """The self-hosted memory server for AI agents: working memory per session, long-term memory across sessions.

Paths work with or without a trailing slash. Times in responses are UTC. Times without a zone are read as UTC, and numbers as epoch seconds.
Errors are JSON: `detail` explains the problem and how to fix it, and `code` is a stable code for programs."""

if TYPE_CHECKING:
    from agent_memory.interfaces.mcp.http import McpHttp, Transport

# Response headers that web pages from other origins may read.
_EXPOSED_HEADERS = ("ETag", "Retry-After", "X-Request-Id", "X-Operation-Id", "X-Pending", "X-Ignored-Fields")
# While Redis is slow, this many of a tenant's requests wait for the tenant's rate limit; the others go on to admission.
_MOST_WAITING_FOR_LIMIT = 32


class _App(FastAPI):
    def build_middleware_stack(self) -> ASGIApp:
        """Build the middleware stack without FastAPI's own layers.

        They would add 10 µs per request.
        """
        app: ASGIApp = ExceptionMiddleware(OperationRouter(self.router), handlers=self.exception_handlers)
        for layer, arguments, options in reversed(self.user_middleware):
            app = layer(app, *arguments, **options)
        return app

    def openapi(self) -> dict[str, Any]:
        is_complete = self.openapi_schema is not None
        document = super().openapi()
        if not is_complete:
            # Import these only for the document, so that they do not delay the start.
            from agent_memory.interfaces.http.document.descriptions import describe_fields
            from agent_memory.interfaces.http.document.examples import add_examples

            describe(document, required=self.state.settings.auth.required)
            describe_fields(document)
            add_examples(document)
        return document


def create_app(settings: Settings, runtime: Runtime | None = None) -> FastAPI:
    """Create the application. If `runtime` is None, its lifespan opens one.

    Startup may raise StartupError.
    """
    mcp = McpDoor(settings, host=settings.server.host) if settings.mcp.on_api else None
    # Do not use include_router: it matches every path twice.
    proxy = ModelProxy(settings)
    routes = [*(route for router in ROUTERS for route in router.routes), *proxy.routes]
    return _assembled(settings, runtime, routes, mcp, host=settings.server.host, proxy=proxy)


def create_mcp_app(settings: Settings, runtime: Runtime, transport: Transport) -> FastAPI:
    """Return an application that serves MCP, /v1/health, /v1/ready and /metrics.

    `state.mcp` tracks its MCP streams.
    """
    from agent_memory.interfaces.mcp.http import McpHttp

    mcp = McpHttp(settings, transport, host=settings.mcp.host)
    return _assembled(settings, runtime, health.router.routes, mcp, host=settings.mcp.host)


def _assembled(
    settings: Settings,
    runtime: Runtime | None,
    routes: Sequence[BaseRoute],
    mcp: McpHttp | McpDoor | None,
    *,
    host: str,
    proxy: ModelProxy | None = None,
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
            if proxy is not None:
                await stack.enter_async_context(proxy.running())
            yield

    app = _App(
        title="agent-memory",
        version=__version__,
        description=DESCRIPTION,
        lifespan=lifespan,
        redirect_slashes=False,
        docs_url=None,  # our own pages send a content security policy
        redoc_url=None,
        openapi_url="/openapi.json",
        # RequestMiddleware already measures requests.
        telemetry={"tracing": False, "metrics": False, "logs": False},
    )
    app.state.runtime = runtime
    app.state.settings = settings
    app.state.mcp = mcp
    app.state.live = LiveStreams()
    app.state.max_body_bytes = settings.server.max_body_bytes
    errors.install(app)
    products = find_compatible_apis()
    # Path prefixes that accept Mem0's `Token` scheme.
    token_prefixes = products["mem0"].PREFIXES if "mem0" in products and (settings.auth.required or "mem0" in settings.compat.names) else ()
    rest_app = _rest_app(app, settings)
    oauth_routes, open_paths, login = _oauth_server(settings, rest_app)
    _add_middleware(app, settings, host, token_prefixes, open_paths, login)
    app.router.routes += pages.pages(app.title, "/openapi.json", BASE if settings.server.console else "/docs")
    compatible = {name: product.routes() for name, product in products.items()}
    routes = [*routes, *(route for name in compatible if name in settings.compat.names for route in compatible[name])]
    mcp_routes = mcp.routes if mcp is not None else ()
    console = console_routes(settings, rest_app) if settings.server.console else ()
    # Routes match in order, so our routes must come before the documentation's routes.
    app.router.routes[:0] = [*routes, *metadata_routes(settings, login), *mcp_routes, *oauth_routes, *console]
    app.router.routes.append(UnservedRoutes({name: each for name, each in compatible.items() if name not in settings.compat.names}))
    return app


def _oauth_server(settings: Settings, rest_app: ASGIApp) -> tuple[Sequence[BaseRoute], frozenset[str], Mapping[str, object]]:
    if not settings.auth.oauth_server:
        return (), frozenset(), provider_metadata(settings)
    # Import the MCP SDK only if it is needed, because this takes a second.
    from agent_memory.interfaces.oauth_server.routes import oauth_server

    return oauth_server(settings, rest_app)


def _rest_app(app: FastAPI, settings: Settings) -> ASGIApp:
    """Return the REST app for the console, which adds the caller to the ASGI scope itself."""
    operations: ASGIApp = ExceptionMiddleware(app.router, handlers=app.exception_handlers)
    required = settings.auth.required
    if settings.limits.limits_any("requests_per_minute"):
        operations = RateLimitMiddleware(operations, limit=partial(_limit_of, app), required=required)
    return AuditMiddleware(operations, required=required) if settings.server.audit_log else operations


def _limit_of(app: FastAPI) -> RequestLimit | None:
    return None if app.state.runtime is None else app.state.runtime[RequestLimit]


def _add_middleware(
    app: FastAPI, settings: Settings, host: str, token_prefixes: tuple[str, ...], open_paths: frozenset[str], login: Mapping[str, object]
) -> None:
    def gate() -> CredentialGate | None:
        return None if app.state.runtime is None else app.state.runtime[Authenticator].gate

    limit = partial(_limit_of, app)
    required, limited = settings.auth.required, settings.limits.limits_any("requests_per_minute")
    seconds = settings.server.request_timeout_seconds
    app.add_middleware(ActingUserMiddleware, required=required)
    if limited:
        app.add_middleware(RateLimitMiddleware, limit=limit, required=required)
    if required:
        app.add_middleware(AuthenticationMiddleware, gate=gate, challenge=partial(challenge_of, settings, login), open_paths=open_paths)
    calls, most = (PREFIX,), settings.server.max_concurrent_requests
    app.add_middleware(AdmissionMiddleware, most=most, fair=required, calls=calls, most_calls=MOST_CALLS)
    if limited:
        app.add_middleware(RateLimitMiddleware, limit=limit, required=required, most_waiting=_MOST_WAITING_FOR_LIMIT)
    if required:
        app.add_middleware(KnownCallerMiddleware, gate=gate)
    if settings.server.audit_log:
        app.add_middleware(AuditMiddleware, required=required)
    origins = [origin for part in settings.server.cors_allowed_origins.split(",") if (origin := part.strip())]
    names = allowed_names(settings, host)
    if names is not None or not required:
        app.add_middleware(HostMiddleware, names=names, origins=frozenset(origins))
    if origins:
        # Answer CORS before authentication: browsers send preflight requests without credentials.
        app.add_middleware(CORSMiddleware, allow_origins=origins, allow_methods=["*"], allow_headers=["*"], expose_headers=_EXPOSED_HEADERS)
    app.add_middleware(BodyDeadlineMiddleware, seconds=settings.server.body_timeout_seconds, request_timeout=seconds, calls=calls)
    if settings.server.upstreams:
        app.add_middleware(UpstreamAuthorizationMiddleware, required=required)
    if token_prefixes:
        app.add_middleware(TokenSchemeMiddleware, prefixes=token_prefixes)
    # The outermost layer: every refusal gets a request id and is counted.
    app.add_middleware(RequestMiddleware, timeout=seconds)
