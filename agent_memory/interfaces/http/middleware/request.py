"""The outermost layer, which handles request ids, deadlines, metrics, logs and crashes."""

from __future__ import annotations

import asyncio
import random
import re
from time import perf_counter

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agent_memory.foundation.api.errors import CLIENT_GONE, UNMATCHED, internal_error, render, template_of
from agent_memory.foundation.api.responses import CONTENT_POLICY, DEADLINE, HAS_REQUEST_ID
from agent_memory.foundation.core.errors import Unavailable
from agent_memory.foundation.core.logs import get_logger, log_request
from agent_memory.foundation.core.metrics import observe_request
from agent_memory.interfaces.http.document.pages import PATHS

log = get_logger(__name__)

_REQUEST_ID = re.compile(rb"[A-Za-z0-9._:-]{1,128}\Z")
_METHODS = frozenset({"GET", "PUT", "POST", "PATCH", "DELETE", "HEAD", "OPTIONS"})
# Paths of monitoring.
_QUIET = frozenset({"/v1/health", "/v1/ready", "/metrics"})
_PREFIX = re.compile(r"/v1/[a-z-]{1,32}(?=/|\Z)")
# Only pages set their own policy in `CONTENT_POLICY`; other answers are data.
_POLICY = b"content-security-policy"
_DATA_POLICY = (_POLICY, b"default-src 'none'; frame-ancestors 'none'")
_GUARDS = ((b"x-content-type-options", b"nosniff"), (b"referrer-policy", b"no-referrer"), (b"x-frame-options", b"DENY"))


class RequestMiddleware:
    """The outermost middleware. `timeout` is the deadline for a request in seconds.

    Streams remove their own deadline.
    """

    def __init__(self, app: ASGIApp, *, timeout: float) -> None:
        self._app = app
        self._timeout = timeout

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = perf_counter()
        scope["agent_memory.request_id"] = request_id = _request_id(scope)
        status = 0

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                policy = (_POLICY, scope[CONTENT_POLICY]) if CONTENT_POLICY in scope else _DATA_POLICY
                ids = () if HAS_REQUEST_ID in scope else ((b"x-request-id", request_id),)
                message["headers"] = [*message["headers"], *ids, policy, *_GUARDS]
            await send(message)

        scope[DEADLINE] = deadline = asyncio.timeout(self._timeout)
        try:
            async with deadline:
                await self._app(scope, receive, send_with_headers)
        except Exception as error:  # keep the connection usable and hide internals from the caller; see the log
            late = isinstance(error, TimeoutError) and deadline.expired()
            subject = {"method": scope["method"], "path": template_of(scope), "request_id": request_id.decode()}
            if late:
                log.warning("request exceeded its deadline", **subject, seconds=self._timeout)
            else:
                log.exception("request failed", **subject)
            if status:
                raise  # half an answer was sent: the server must cut the connection
            answer = render(Unavailable(f"the request took longer than {self._timeout:g} s: try again")) if late else internal_error()
            await answer(scope, receive, send_with_headers)
        finally:
            method = scope["method"] if scope["method"] in _METHODS else "other"
            template, seconds = template_of(scope), perf_counter() - started
            observe_request(method, template, status, seconds)
            path = _prefix_of(scope["path"]) if template == UNMATCHED else template
            log_request(method, path, status or CLIENT_GONE, seconds, request_id.decode(), quiet=template in _QUIET)


def _prefix_of(path: str) -> str:
    """Return the part of an unknown path that is safe to log."""
    if path in PATHS:
        return path
    prefix = _PREFIX.match(path)
    return f"{prefix[0]}/*" if prefix else UNMATCHED


def _request_id(scope: Scope) -> bytes:
    """Return the caller's `X-Request-Id` if it is valid, or else a new id."""
    for name, value in scope["headers"]:
        if name == b"x-request-id":
            if _REQUEST_ID.match(value):
                return value
            break
    return b"%016x" % random.getrandbits(64)
