"""Middleware that limits a request to the user in the `X-Acting-User` header.

The limit applies to every operation, even one that takes only an id.
"""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import unquote

from starlette.types import ASGIApp, Receive, Scope, Send

from agent_memory.foundation.api.errors import render
from agent_memory.foundation.api.principals import EVERYBODY, PRINCIPAL, resolve_name
from agent_memory.foundation.core.errors import AgentMemoryError, BadInput
from agent_memory.foundation.core.scope import Principal, Role
from agent_memory_client.models import ACTING_USER_HEADER

_HEADER = ACTING_USER_HEADER.lower().encode()
_MAX_BYTES = 4096


class ActingUserMiddleware:
    """Limit the caller to the user in `X-Acting-User`, or respond with 403 or 422."""

    def __init__(self, app: ASGIApp, *, required: bool) -> None:
        self._app = app
        self._anonymous = None if required else EVERYBODY

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            users = {value for name, value in scope["headers"] if name == _HEADER}
            caller: Principal | None = scope.get(PRINCIPAL, self._anonymous)
            if users and caller is not None:
                try:
                    scope[PRINCIPAL] = _acting(caller, users)
                except AgentMemoryError as error:
                    await render(error)(scope, receive, send)
                    return
        await self._app(scope, receive, send)


def _acting(caller: Principal, users: set[bytes]) -> Principal:
    value = users.pop()
    try:
        user = unquote(value.decode("ascii"), errors="strict")
    except UnicodeDecodeError:
        user = ""
    if users or not user.strip() or len(value) > _MAX_BYTES:
        raise BadInput("must be one user id, percent-encoded UTF-8", field=ACTING_USER_HEADER, where="header")
    resolve_name("user_id", caller.users, user)
    role = Role.WRITE if caller.role is Role.ADMIN else caller.role
    return replace(caller, users=frozenset({user}), role=role, operator=False)
