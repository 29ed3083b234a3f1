"""Reserve the `Authorization` header for the upstream on the proxy's paths."""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

from agent_memory.foundation.api.errors import render
from agent_memory.foundation.core.errors import BadInput, Unauthenticated

PREFIX = "/proxy/v1/"
UPSTREAM_AUTHORIZATION = "agent_memory.upstream_authorization"
"""Key in an ASGI scope: the `Authorization` header for the upstream."""
OUR_CREDENTIAL = b"x-api-key"


class UpstreamAuthorizationMiddleware:
    """Hide `Authorization` from this server, which reads only `X-API-Key` on the proxy's paths.

    Refuse a request that would send this server's key to the upstream. With `required`, also refuse a request without
    such a key.
    """

    def __init__(self, app: ASGIApp, *, required: bool) -> None:
        self._app = app
        self._required = required

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"].startswith(PREFIX):
            headers: list[tuple[bytes, bytes]] = scope["headers"]
            upstream_values = [value for name, value in headers if name == b"authorization"]
            ours = [value.strip() for name, value in headers if name == OUR_CREDENTIAL]
            if self._required and not ours:
                refusal = Unauthenticated("send the key of this server as X-API-Key: Authorization is for the upstream")
                await render(refusal)(scope, receive, send)
                return
            if any(key and key in value for key in ours for value in upstream_values):
                message = "must hold the upstream's key, not the one in X-API-Key, which the upstream must not see"
                await render(BadInput(message, field="authorization", where="header"))(scope, receive, send)
                return
            scope["headers"] = [pair for pair in headers if pair[0] != b"authorization"]
            scope[UPSTREAM_AUTHORIZATION] = upstream_values
        await self._app(scope, receive, send)
