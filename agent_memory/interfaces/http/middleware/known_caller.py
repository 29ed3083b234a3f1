"""Middleware that identifies known callers before admission."""

from __future__ import annotations

from collections.abc import Callable

from starlette.types import ASGIApp, Receive, Scope, Send

from agent_memory.features.access.credentials import CredentialGate, credential_of
from agent_memory.foundation.api.principals import PRINCIPAL
from agent_memory.foundation.core.errors import Unauthenticated
from agent_memory.interfaces.http.middleware.admission import TENANT

# Name of the operators' share of places; no tenant can have this name.
_OPERATORS = "\0operators"


class KnownCallerMiddleware:
    """Identify callers by recently verified credentials, if the server requires credentials.

    `gate` may return None until the runtime is open.
    """

    def __init__(self, app: ASGIApp, *, gate: Callable[[], CredentialGate | None]) -> None:
        self._app = app
        self._gate = gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            self._identify(scope)
        await self._app(scope, receive, send)

    def _identify(self, scope: Scope) -> None:
        try:
            credential = credential_of(scope["headers"])
        except Unauthenticated:
            return  # AuthenticationMiddleware answers with the reason
        gate = None if credential is None else self._gate()
        recalled = None if gate is None or credential is None else gate.recall_principal(credential)
        if recalled is not None:
            principal, still_counts = recalled
            scope[TENANT] = _OPERATORS if principal.operator else principal.tenant
            if still_counts:
                scope[PRINCIPAL] = principal
