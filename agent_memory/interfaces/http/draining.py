"""Finish the last requests when a process stops, and make clients reconnect."""

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
    """Middleware around the entire application.

    After `begin`, each response has the header `Connection: close`.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._begun = False

    def begin(self) -> None:
        self._begun = True

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if self._begun:
            scope[STOPPING] = True

        async def send_last(message: Message) -> None:
            # Requests that started before `begin` get the header, too.
            if self._begun and message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), (b"connection", b"close")]
            await send(message)

        await self._app(scope, receive, send_last)


class Stopping(Unavailable):
    code = "stopping"


def last_answer() -> bytes:
    """Return a 503 response that closes a connection without resetting it."""
    answer = render(Stopping("the process is stopping: send the request again"))
    head = b"".join(b"%s: %s\r\n" % header for header in (*answer.raw_headers, (b"connection", b"close")))
    return b"HTTP/1.1 503 Service Unavailable\r\n%s\r\n%s" % (head, bytes(answer.body))


LINGER_SECONDS = 1.0
"""Seconds to read and ignore data after the last response. Closing earlier would reset the connection."""
_IN_QUEUE_SECONDS = 0.05


async def turn_away(listeners: Sequence[socket.socket]) -> None:
    """Respond to queued connections, and close the listeners.

    Call this while uvicorn closes its duplicates of the same sockets. Otherwise, the kernel would
    reset connections that no process has accepted.
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
