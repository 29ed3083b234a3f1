"""Counts the requests of each tenant, before anything of them is read. Installed only where some tenant has a limit.

It must know who asks, and so stands within the check of credentials.
"""

from __future__ import annotations

from collections.abc import Callable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agent_memory.api import documentation
from agent_memory.api.errors import render
from agent_memory.errors import AgentMemoryError
from agent_memory.scope import Principal
from agent_memory.services.access import EVERYBODY, PRINCIPAL
from agent_memory.services.limits import RequestLimit

COUNTED = "agent_memory.counted"
"""The name under which an ASGI scope says that the request was counted at the door (`turnstile.py`)."""
# Whoever watches the server is no tenant.
UNCOUNTED = frozenset({"/v1/health", "/v1/ready", "/metrics", *documentation.PATHS})
# A request counts as one, and once more for so many bytes of its body: what it costs to read, count and remember grows with them.
BODY_UNIT = 16 * 1024


def cost_of(scope: Scope) -> int | None:
    """How many requests one counts for, by the length that it declares; None when it declares none, but has a body."""
    for name, value in scope["headers"]:
        if name == b"content-length":
            # A number of more digits is beyond every limit of a body, and refused for that.
            return 1 + int(value) // BODY_UNIT if len(value) <= 12 and value.isdigit() else 1
        if name == b"transfer-encoding":
            return None
    return 1


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
        if caller is None or limit is None or scope["path"].rstrip("/") in UNCOUNTED or (caller.operator and caller is not EVERYBODY):
            await self._app(scope, receive, send)
            return
        cost = cost_of(scope)
        if COUNTED not in scope:
            try:
                await limit.admit(caller.tenant, cost or 1)
            except AgentMemoryError as error:
                await render(error)(scope, receive, send)
                return
        await self._app(scope, receive if cost else _counted(receive, limit, caller.tenant), send)


def _counted(receive: Receive, limit: RequestLimit, tenant: str) -> Receive:
    """Counts a body of unknown length while it is read, at the same price. Raises TooMany, RedisUnavailable to whoever reads."""
    beyond = 0

    async def receive_counted() -> Message:
        nonlocal beyond
        message = await receive()
        beyond += len(message.get("body", b""))
        if (more := beyond // BODY_UNIT) > 0:
            beyond -= more * BODY_UNIT
            await limit.admit(tenant, more)
        return message

    return receive_counted
