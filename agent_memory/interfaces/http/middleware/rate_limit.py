"""Limit each tenant's request rate before reading the requests."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable

from starlette.types import ASGIApp, Receive, Scope, Send

from agent_memory.features.access.limits import RequestLimit
from agent_memory.foundation.api.errors import render
from agent_memory.foundation.api.principals import EVERYBODY, PRINCIPAL
from agent_memory.foundation.core.errors import AgentMemoryError
from agent_memory.foundation.core.scope import Principal
from agent_memory.interfaces.console.paths import is_console
from agent_memory.interfaces.http.document import pages
from agent_memory.interfaces.http.middleware.request_cost import cost_of, counted_body

_COUNTED = "agent_memory.counted"
"""Key in an ASGI scope: the request has already been counted."""
# Monitoring requests are not counted.
_UNCOUNTED_PATHS = frozenset({"/v1/health", "/v1/ready", "/metrics", *pages.PATHS})
# Delay refusals to a persistent sender. Otherwise one connection can ask thousands of times a second.
_HOLD_SECONDS = 0.05
_MOST_DELAYED = 256


class RateLimitMiddleware:
    """Middleware that rejects requests above the limit with 429 and a `Retry-After` header.

    The server installs it twice: before admission for known callers, and after authentication for
    all others. If `required` is true, operators have no limit.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        limit: Callable[[], RequestLimit | None],
        required: bool,
        most_waiting: float = math.inf,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._app = app
        self._limit = limit
        self._anonymous = None if required else EVERYBODY
        self._most_waiting = most_waiting
        self._pause = pause
        self._delayed_count = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        caller: Principal | None = scope.get(PRINCIPAL, self._anonymous)
        limit = self._limit()
        if limit is None or caller is None or not self._counts(scope, caller) or limit.waiting(caller.tenant) >= self._most_waiting:
            await self._app(scope, receive, send)
            return
        cost = cost_of(scope)
        try:
            await limit.admit(caller.tenant, cost or 1)
        except AgentMemoryError as error:
            if self._delayed_count < _MOST_DELAYED and limit.is_hammered(caller.tenant):
                await self._hold()
            await render(error)(scope, receive, send)
            return
        scope[_COUNTED] = True
        await self._app(scope, receive if cost else counted_body(receive, limit, caller.tenant), send)

    @staticmethod
    def _counts(scope: Scope, caller: Principal) -> bool:
        if scope["type"] != "http" or _COUNTED in scope or (caller.operator and caller is not EVERYBODY):
            return False
        path = scope["path"]
        # The console's pages are not counted, because their REST calls are.
        return path.rstrip("/") not in _UNCOUNTED_PATHS and not is_console(path)

    async def _hold(self) -> None:
        self._delayed_count += 1
        try:
            await self._pause(_HOLD_SECONDS)
        finally:
            self._delayed_count -= 1
