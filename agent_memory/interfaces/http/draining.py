"""The last seconds of a process that was told to stop: it answers what still comes, and each answer sends its caller elsewhere."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Sequence

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agent_memory.foundation.api.dependencies import STOPPING
from agent_memory.foundation.api.errors import render
from agent_memory.foundation.core.errors import Unavailable


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


class Stopping(Unavailable):
    """The process takes no more requests."""

    code = "stopping"


def last_answer() -> bytes:
    """A whole 503 that ends a connection.

    It is written to a connection that is closed although a request may be on its way: that request finds an answer, and
    nobody else reads it. A close alone would reset the request.
    """
    answer = render(Stopping("the process is stopping: send the request again"))
    head = b"".join(b"%s: %s\r\n" % header for header in (*answer.raw_headers, (b"connection", b"close")))
    return b"HTTP/1.1 503 Service Unavailable\r\n%s\r\n%s" % (head, bytes(answer.body))


LINGER_SECONDS = 1.0
"""How long we read, and ignore, what still comes on a connection that has its last answer: a close would reset it."""
_IN_QUEUE_SECONDS = 0.05


async def turn_away(listeners: Sequence[socket.socket]) -> None:
    """Give connections that wait in the queue of listeners their last answer, and close the listeners.

    Call it while uvicorn closes its own names of the same sockets. The kernel resets connections that nobody accepted.
    """
    await asyncio.sleep(_IN_QUEUE_SECONDS)
    waiting: list[socket.socket] = []
    for listener in listeners:
        with contextlib.suppress(OSError):  # BlockingIOError: the queue is empty
            while True:
                waiting.append(listener.accept()[0])
        listener.close()
    await asyncio.gather(*map(_turn_away, waiting))


async def _turn_away(connection: socket.socket) -> None:
    connection.setblocking(False)
    with contextlib.suppress(OSError, TimeoutError):
        reader, writer = await asyncio.open_connection(sock=connection)
        writer.write(last_answer())
        writer.write_eof()
        with contextlib.closing(writer):
            async with asyncio.timeout(LINGER_SECONDS):
                while await reader.read(65536):
                    pass
