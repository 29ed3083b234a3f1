"""Reserve the `Authorization` header for the upstream, and explain rejections to model SDKs."""

from __future__ import annotations

from typing import Any

from pydantic_core import from_json, to_json
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agent_memory.foundation.api.errors import render
from agent_memory.foundation.core.errors import BadInput, Unauthenticated

PREFIX = "/proxy/v1/"
UPSTREAM_AUTHORIZATION = "agent_memory.upstream_authorization"
"""Key in an ASGI scope: the `Authorization` header for the upstream."""
FORWARDED = "agent_memory.forwarded"
"""Key in an ASGI scope: the response comes from the upstream."""
OUR_CREDENTIAL = b"x-api-key"


class UpstreamAuthorizationMiddleware:
    """Hides `Authorization` from this server, which reads only `X-API-Key` on the proxy's paths.

    Rejects requests that would send this server's key to the upstream. If `required` is true, also
    rejects requests with no key for this server.
    """

    def __init__(self, app: ASGIApp, *, required: bool) -> None:
        self._app = app
        self._required = required

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"].startswith(PREFIX):
            send = _explaining(scope, send)
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


def _explaining(scope: Scope, send: Send) -> Send:
    """Return a `send` that adds `error.message` to this server's rejections.

    The model SDKs show no other text.
    """
    start: Message | None = None

    async def send_explained(message: Message) -> None:
        nonlocal start
        if message["type"] == "http.response.start" and FORWARDED not in scope and _is_refusal(message):
            start = message
            return
        if start is not None:
            body = _explained(message["body"])
            headers = [(name, value) for name, value in start["headers"] if name.lower() != b"content-length"]
            await send({**start, "headers": [*headers, (b"content-length", b"%d" % len(body))]})
            start, message = None, {**message, "body": body}
        await send(message)

    return send_explained


def _is_refusal(start: Message) -> bool:
    return start["status"] >= 400 and (b"content-type", b"application/json") in start["headers"]


def _explained(body: bytes) -> bytes:
    refusal: dict[str, Any] = from_json(body)
    detail, code = refusal["detail"], refusal["code"]
    text = detail if isinstance(detail, str) else "; ".join(problem["msg"] for problem in detail)
    return to_json({**refusal, "error": {"message": text, "type": code, "code": code}})
