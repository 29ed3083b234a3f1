"""The last seconds of a process that was told to stop: it answers what still comes, and each answer sends its caller elsewhere."""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

STOPPING = "agent_memory.stopping"
"""The name under which an ASGI scope says that the process is stopping."""


class Draining:
    """Pure ASGI, outermost. From `begin` on each answer carries `Connection: close`, after which the server closes the connection."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._begun = False

    def begin(self) -> None:
        """The process was told to stop."""
        self._begun = True

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if self._begun:
            scope[STOPPING] = True

        async def send_last(message: Message) -> None:
            # Also to what was asked before: its caller learns it in time.
            if self._begun and message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), (b"connection", b"close")]
            await send(message)

        await self._app(scope, receive, send_last)
