"""Counts the requests of each tenant, before anything of them is read. Installed only where some tenant has a limit.

It must know who asks, and so stands within the check of credentials.
"""

from __future__ import annotations

from collections.abc import Callable

from starlette.types import ASGIApp, Receive, Scope, Send

from agent_memory.api.errors import render
from agent_memory.errors import AgentMemoryError
from agent_memory.scope import Principal
from agent_memory.services.access import EVERYBODY, PRINCIPAL
from agent_memory.services.limits import RequestLimit

# Whoever watches the server is no tenant.
_UNCOUNTED = frozenset({"/v1/health", "/v1/ready", "/metrics", "/docs", "/redoc", "/openapi.json"})


class Limiting:
    """Pure ASGI: answers 429 with `Retry-After` for a tenant that asks too often. `limit` is asked for at each request, as it opens later.

    Operators are let in in any case where credentials are asked for (`required`): they must be able to act while somebody floods.
    """

    def __init__(self, app: ASGIApp, *, limit: Callable[[], RequestLimit | None], required: bool) -> None:
        self._app = app
        self._limit = limit
        self._nobody = None if required else EVERYBODY

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        caller: Principal | None = scope.get(PRINCIPAL, self._nobody)
        limit = self._limit()
        if caller is None or limit is None or scope["path"].rstrip("/") in _UNCOUNTED or (caller.operator and caller is not EVERYBODY):
            await self._app(scope, receive, send)
            return
        try:
            await limit.admit(caller.tenant)
        except AgentMemoryError as error:
            await render(error)(scope, receive, send)
            return
        await self._app(scope, receive, send)
