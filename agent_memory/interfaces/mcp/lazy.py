"""Load the MCP SDK on the first MCP call, because it takes a second to load."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from starlette.types import Receive, Send
from starlette.types import Scope as AsgiScope

from agent_memory.foundation.core.errors import Unavailable
from agent_memory.foundation.core.settings import Settings
from agent_memory.interfaces.mcp.paths import routes_of
from agent_memory.runtime import Runtime

if TYPE_CHECKING:
    from agent_memory.interfaces.mcp.http import McpHttp


class McpDoor:
    """Provides the streamable HTTP routes at `/mcp`.

    The application's lifespan must enter `running`.
    """

    def __init__(self, settings: Settings, *, host: str) -> None:
        self._settings = settings
        self._host = host
        self._requested = asyncio.Event()
        self._opened: asyncio.Future[McpHttp] | None = None
        self.routes = routes_of("POST", "mcp", self._streamable)

    @asynccontextmanager
    async def running(self, runtime: Runtime) -> AsyncGenerator[None]:
        """Handle calls with `runtime` while the context is open."""
        self._requested, self._opened, over = asyncio.Event(), asyncio.get_running_loop().create_future(), asyncio.Event()
        # The task that opens the SDK must also close it.
        task = asyncio.create_task(self._serve(runtime, self._opened, over))
        try:
            yield
        finally:
            over.set()
            self._requested.set()
            self._opened = None
            await task

    async def _serve(self, runtime: Runtime, opened: asyncio.Future[McpHttp], over: asyncio.Event) -> None:
        await self._requested.wait()
        try:
            if over.is_set():
                raise Unavailable("the server is stopping")
            make = await asyncio.to_thread(_load, self._settings)
            http = make(self._settings, "streamable-http", host=self._host)
            async with http.running(runtime):
                opened.set_result(http)
                await over.wait()
        except Exception as error:  # the waiting callers get the error
            if opened.done():
                raise
            opened.set_exception(error)
            opened.exception()

    async def _streamable(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        opened = self._opened
        if opened is None:
            raise Unavailable("the server is starting: try again")
        self._requested.set()
        # Shield it, because other callers may wait for it beyond this request's deadline.
        http = await asyncio.shield(opened)
        await http.streamable(scope, receive, send)


def _load(settings: Settings) -> type[McpHttp]:
    from agent_memory.interfaces.mcp.http import McpHttp
    from agent_memory.interfaces.mcp.server import listed_tools

    # This takes 0.3 s, so it must not run on the event loop.
    listed_tools(settings.mcp.tools)
    return McpHttp
