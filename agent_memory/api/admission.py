"""Admission: as many requests at a time as the process can serve in time; the rest is refused at once, before anything is read.

What is admitted then ends within its deadline, however much is asked for, and a refused caller learns it while it can still go elsewhere.
"""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

from agent_memory.api.errors import render
from agent_memory.errors import Overloaded
from agent_memory.metrics import REQUESTS_IN_FLIGHT, REQUESTS_REFUSED

# Whoever watches the server must see it when it has no room.
_EXEMPT = frozenset({"/v1/health", "/v1/ready", "/metrics"})
# A stream waits nearly always; what it is asked to do comes in requests of their own.
_STREAM = "/sse"
_RETRY_AFTER_SECONDS = 1


class Admission:
    """Pure ASGI. `most` requests are under way at a time; a refusal is a 503 with `Retry-After`."""

    def __init__(self, app: ASGIApp, *, most: int) -> None:
        self._app = app
        self._most = most
        self._in_flight = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or (path := scope["path"].rstrip("/")) in _EXEMPT or path.endswith(_STREAM):
            await self._app(scope, receive, send)
            return
        if self._in_flight >= self._most:
            REQUESTS_REFUSED.inc()
            message = f"{self._most} requests are under way already (MAX_CONCURRENT_REQUESTS): try again"
            await render(Overloaded(message, retry_after=_RETRY_AFTER_SECONDS))(scope, receive, send)
            return
        self._in_flight += 1
        REQUESTS_IN_FLIGHT.set(self._in_flight)
        try:
            await self._app(scope, receive, send)
        finally:
            self._in_flight -= 1
            REQUESTS_IN_FLIGHT.set(self._in_flight)
