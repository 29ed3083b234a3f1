"""Record requests in the audit trail, including those without valid credentials."""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agent_memory.features.access import audit
from agent_memory.foundation.api.errors import template_of
from agent_memory.foundation.api.operation import ANSWER, ARGUMENTS
from agent_memory.foundation.api.principals import EVERYBODY, PRINCIPAL
from agent_memory.foundation.core.scope import Principal
from agent_memory.interfaces.console.paths import is_console
from agent_memory.interfaces.http.document import pages

# The console's pages are not audited, because their REST calls are.
_UNAUDITED_PATHS = frozenset({"/v1/health", "/v1/ready", "/metrics", *pages.PATHS})


class AuditMiddleware:
    """Middleware that audits all requests except for monitoring and console pages.

    `required` is True if the server requires credentials.
    """

    def __init__(self, app: ASGIApp, *, required: bool) -> None:
        self._app = app
        self._anonymous = None if required else EVERYBODY

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"].rstrip("/") in _UNAUDITED_PATHS or is_console(scope["path"]):
            await self._app(scope, receive, send)
            return
        status = 500

        async def send_noting_status(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, send_noting_status)
        finally:
            caller: Principal | None = scope.get(PRINCIPAL, self._anonymous)
            arguments = scope.get(ARGUMENTS, scope.get("path_params", {}))
            answer = getattr(scope.get(ANSWER), "model", None)
            audit.record(
                operation=f"{scope['method']} {template_of(scope)}",
                status=status,
                tenant=caller.tenant if caller else None,
                actor=caller.subject if caller else None,
                ids=audit.ids_of(arguments, arguments.get("body"), answer=answer),
                request_id=scope["agent_memory.request_id"].decode(),
                counts=audit.counts_of(answer),
            )
