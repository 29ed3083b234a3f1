"""Serve MCP over streamable HTTP at `/mcp` and SSE at `/sse`, including under `/{namespace}`.

Each call's caller comes from its own request, so concurrent calls cannot share permissions.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Literal, TypeAlias

import anyio
from mcp.server import Server
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.sse import SseServerTransport
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from mcp.types import INVALID_PARAMS
from starlette.requests import Request
from starlette.types import Message, Receive, Send
from starlette.types import Scope as AsgiScope

from agent_memory.features.access.exposure import is_loopback
from agent_memory.foundation.api.dependencies import scope_of
from agent_memory.foundation.api.responses import DEADLINE
from agent_memory.foundation.core.errors import Unavailable
from agent_memory.foundation.core.input.bounds import check_values
from agent_memory.foundation.core.input.lone_surrogates import repair_json
from agent_memory.foundation.core.mcp_tools import Caller
from agent_memory.foundation.core.settings import Settings
from agent_memory.interfaces.mcp.paths import namespace_in, routes_of
from agent_memory.interfaces.mcp.server import REPAIRED, build_server
from agent_memory.runtime import Runtime

Transport: TypeAlias = Literal["streamable-http", "sse"]

_NO_MESSAGE = json.dumps(
    {"jsonrpc": "2.0", "id": None, "error": {"code": INVALID_PARAMS, "message": "Validation error: the body is not a JSON-RPC 2.0 message"}}
).encode()
_THIS_MACHINE = ("127.0.0.1", "localhost", "[::1]")


class McpHttp:
    """Provides MCP routes for an application whose lifespan enters `running`."""

    def __init__(self, settings: Settings, transport: Transport, *, host: str) -> None:
        self._settings = settings
        self._security = _security(settings, host)
        self._server: Server[Any] | None = None
        self._manager: StreamableHTTPSessionManager | None = None
        self._sse = SseServerTransport("/messages/", self._security, settings.server.max_body_bytes)
        self._streams: set[anyio.CancelScope] = set()
        if transport == "streamable-http":
            self.routes = routes_of("POST", "mcp", self.streamable)
        else:
            self.routes = routes_of("GET", "sse", self._stream) + routes_of("POST", "messages", self._message)

    @asynccontextmanager
    async def running(self, runtime: Runtime) -> AsyncGenerator[None]:
        """Handle calls with `runtime` while the context is open."""
        self._server = server = build_server(self._settings, runtime, self._find_caller)
        # Stateless: no session can be lost, hijacked, or missing in another process.
        self._manager = StreamableHTTPSessionManager(
            server,
            json_response=True,
            stateless=True,
            security_settings=self._security,
            max_request_body_size=self._settings.server.max_body_bytes,
        )
        try:
            async with self._manager.run():
                yield
        finally:
            self._server = self._manager = None
            self.stop()

    def stop(self) -> None:
        """Close all open streams."""
        for stream in self._streams:
            stream.cancel()

    async def _find_caller(self, request: Request | None) -> Caller:
        assert request is not None, "over HTTP each message is brought by a request"
        mcp = self._settings.mcp
        return Caller.of(scope_of(request), namespace_in(request.scope) or mcp.namespace, mcp.user_id)

    async def streamable(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        if self._manager is None:
            raise Unavailable("the server is starting: try again")
        await self._manager.handle_request(scope, self._repairing(scope, receive), _without_echo(send))

    async def _stream(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        server = self._server
        if server is None:
            raise Unavailable("the server is starting: try again")
        refusal = await TransportSecurityMiddleware(self._security).validate_request(Request(scope))
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        if DEADLINE in scope:
            scope[DEADLINE].reschedule(None)
        namespace = namespace_in(scope)
        # The client must send its messages to its stream's namespace.
        below = {**scope, "root_path": f"{scope.get('root_path', '').rstrip('/')}/{namespace}"} if namespace else scope
        self._name_owner(below)
        async with self._sse.connect_sse(below, receive, send) as (incoming, outgoing):
            with anyio.CancelScope() as stream:
                self._streams.add(stream)
                try:
                    await server.run(incoming, outgoing, server.create_initialization_options())
                finally:
                    self._streams.discard(stream)
            await outgoing.aclose()

    def _name_owner(self, scope: AsgiScope) -> None:
        """Put the caller's identity into the scope, so that no other caller can use the stream."""
        caller_scope = scope_of(Request(scope))
        scope["user"] = AuthenticatedUser(AccessToken(token="", client_id=caller_scope.tenant, subject=caller_scope.actor, scopes=[]))

    async def _message(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        self._name_owner(scope)
        await self._sse.handle_post_message(scope, self._repairing(scope, receive), send)

    def _repairing(self, scope: AsgiScope, receive: Receive) -> Receive:
        """Return a `receive` that returns the entire body with its Unicode repaired.

        The returned function may raise BadInput.
        """
        most = self._settings.server.max_body_bytes

        async def receive_repaired() -> Message:
            pieces: list[bytes] = []
            more = True
            while more and sum(map(len, pieces)) <= most:
                message = await receive()
                if message["type"] != "http.request":
                    return message
                pieces.append(message.get("body", b""))
                more = message.get("more_body", False)
            body = b"".join(pieces)
            check_values(body)
            if not more and (repaired := repair_json(body)) is not None:
                scope[REPAIRED] = repaired
                body = repaired.body
            return {"type": "http.request", "body": body, "more_body": more}

        return receive_repaired


def _without_echo(send: Send) -> Send:
    """Return a `send` that removes the caller's data from the SDK's error messages."""
    pending_start: Message | None = None

    async def send_discreetly(message: Message) -> None:
        nonlocal pending_start
        if message["type"] == "http.response.start" and message["status"] == 400:
            pending_start = message
            return
        if pending_start is not None:
            start, pending_start = pending_start, None
            if b"Validation error" in message.get("body", b""):
                message = {**message, "body": _NO_MESSAGE}
                lengths = (b"content-length", b"%d" % len(_NO_MESSAGE))
                start = {
                    **start,
                    "headers": [lengths if name.lower() == b"content-length" else (name, value) for name, value in start["headers"]],
                }
            await send(start)
        await send(message)

    return send_discreetly


def _security(settings: Settings, host: str) -> TransportSecuritySettings:
    names = [name for part in settings.server.allowed_hosts.split(",") if (name := part.strip())]
    if "*" in names or not (names or is_loopback(host)):
        return TransportSecuritySettings(enable_dns_rebinding_protection=False)
    names += _THIS_MACHINE
    hosts = [entry for name in names for entry in (name, f"{name}:*")]
    # `HostMiddleware` has already checked our own origins with their ports.
    origins = [f"{scheme}://{entry}" for entry in hosts for scheme in ("http", "https")]
    origins += [origin for part in settings.server.cors_allowed_origins.split(",") if (origin := part.strip())]
    return TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=origins)
