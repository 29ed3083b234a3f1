"""Run uvicorn on open sockets, with its signal handlers disabled."""

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

# libuv accepts one connection per socket in each turn of the loop. Under load a turn takes milliseconds, and callers
# would wait in the kernel's queue, where nothing refuses them. So the loop watches this many duplicates of each socket.
_ACCEPTS_PER_TURN = 32


class _Uvicorn(uvicorn.Server):
    """A uvicorn server that ignores signals, and sets `answers` once it accepts requests."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.answers = asyncio.Event()
        self.listeners: list[socket.socket] = []
        """Duplicates of the listening sockets. They close once all queued connections have a response."""

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
    """Serves an application on listening sockets. `on_stop` ends requests that would not end."""

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
            access_log=False,  # it would log queries; the outermost middleware writes our own line
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=settings.server.shutdown_grace_seconds,
        )
        self._uvicorn = _Uvicorn(config)

    async def run(self) -> None:
        """Serve until `stop` is called."""
        # uvicorn closes its sockets when it stops. An address stays open until the last duplicate is closed.
        self._uvicorn.listeners = [listener.dup() for listener in self._listeners]
        names = [name for listener in self._listeners for name in (listener, *(listener.dup() for _ in range(_ACCEPTS_PER_TURN - 1)))]
        await self._uvicorn.serve(sockets=names)

    async def started(self) -> None:
        """Wait until the server accepts requests."""
        await self._uvicorn.answers.wait()

    def drain(self) -> bool:
        """Close each connection after its next response, and make readiness checks fail."""
        self._draining.begin()
        return True

    def stop(self) -> None:
        """Stop accepting connections. `run` returns after pending requests or the grace period."""
        self.drain()
        self._uvicorn.should_exit = True
        if self._on_stop is not None:
            self._on_stop()
