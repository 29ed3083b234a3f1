"""uvicorn on sockets that were taken at the start, without its signals, and with an answer for every connection when it stops."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import uvicorn

from agent_memory.foundation.core.settings import Settings
from agent_memory.interfaces.http.draining import Draining, turn_away
from agent_memory.interfaces.http.protocol import KEEP_ALIVE_SECONDS, http_protocol

# libuv takes one new connection per socket in each turn of the loop, and under load a turn takes milliseconds: callers would wait in the
# kernel's queue, where nobody refuses them, and when that is full for seconds. So each socket is looked at under this many names.
_ACCEPTS_PER_TURN = 32


class _Uvicorn(uvicorn.Server):
    """A uvicorn that leaves the signals to us and says when it answers requests."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.answers = asyncio.Event()
        self.listeners: list[socket.socket] = []
        """Names of the listening sockets that stay open until all connections in their queues have an answer."""

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        self.answers.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(turn_away(self.listeners))
            await super().shutdown(sockets=sockets)


class HttpServer:
    """An application on sockets that listen. `on_stop` ends requests that have no end of their own."""

    def __init__(
        self, listeners: list[socket.socket], app: Callable[..., Any], settings: Settings, on_stop: Callable[[], None] | None
    ) -> None:
        self._listeners = listeners
        self._on_stop = on_stop
        self._draining = Draining(app)
        config = uvicorn.Config(
            self._draining,
            loop="none",
            http=http_protocol(settings),
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,  # it would tell queries; our own line is written by the outermost middleware
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=settings.server.shutdown_grace_seconds,
        )
        self._uvicorn = _Uvicorn(config)

    async def run(self) -> None:
        """Serve until `stop`."""
        # uvicorn closes them when it is told to stop; the address ends with the last name of each.
        self._uvicorn.listeners = [listener.dup() for listener in self._listeners]
        names = [name for listener in self._listeners for name in (listener, *(listener.dup() for _ in range(_ACCEPTS_PER_TURN - 1)))]
        await self._uvicorn.serve(sockets=names)

    async def started(self) -> None:
        """Return once requests are answered."""
        await self._uvicorn.answers.wait()

    def drain(self) -> bool:
        """Make each answer the last on its connection, and readiness say that we stop; requests are answered all the same."""
        self._draining.begin()
        return True

    def stop(self) -> None:
        """Stop accepting; `run` returns when the requests that run have been answered, or after the grace time."""
        self.drain()
        self._uvicorn.should_exit = True
        if self._on_stop is not None:
            self._on_stop()
