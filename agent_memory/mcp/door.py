"""The way to MCP for the API, which most callers never take: the SDK, a second of work to import, is loaded for the first who does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import Receive, Send
from starlette.types import Scope as AsgiScope

from agent_memory.errors import BadInput, Unavailable
from agent_memory.runtime import Runtime
from agent_memory.scope import Scope
from agent_memory.settings import Settings
from agent_memory_client.models import Identifier

if TYPE_CHECKING:
    from agent_memory.mcp.http import McpHttp

DEADLINE = "agent_memory.deadline"
"""Where an ASGI scope holds the request's `asyncio.Timeout`: a stream, which has no end, lifts it."""

_IDENTIFIER: TypeAdapter[str] = TypeAdapter(Identifier)


class McpDoor:
    """The routes of streamable HTTP at `/mcp`, for an application whose lifespan enters `running`."""

    def __init__(self, settings: Settings, scope_of: Callable[[Request], Scope], *, host: str) -> None:
        self._settings = settings
        self._scope_of = scope_of
        self._host = host
        self._asked = asyncio.Event()
        self._opened: asyncio.Future[McpHttp] | None = None
        self.routes = routes_of("POST", "mcp", self._streamable)

    @asynccontextmanager
    async def running(self, runtime: Runtime) -> AsyncGenerator[None]:
        """Answers calls with this runtime."""
        self._asked, self._opened, over = asyncio.Event(), asyncio.get_running_loop().create_future(), asyncio.Event()
        # What the SDK opens must be closed by the task that opened it.
        task = asyncio.create_task(self._serve(runtime, self._opened, over))
        try:
            yield
        finally:
            over.set()
            self._asked.set()
            self._opened = None
            await task

    async def _serve(self, runtime: Runtime, opened: asyncio.Future[McpHttp], over: asyncio.Event) -> None:
        await self._asked.wait()
        try:
            if over.is_set():
                raise Unavailable("the server is stopping")
            make = await asyncio.to_thread(_load)
            http = make(self._settings, self._scope_of, ["streamable-http"], host=self._host)
            async with http.running(runtime):
                opened.set_result(http)
                await over.wait()
        except Exception as error:  # whoever asked gets it
            if opened.done():
                raise
            opened.set_exception(error)
            opened.exception()

    async def _streamable(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        opened = self._opened
        if opened is None:
            raise Unavailable("the server is starting")
        self._asked.set()
        # Others wait for it, too, and it goes on when this one's deadline has passed.
        http = await asyncio.shield(opened)
        await http.streamable(scope, receive, send)


def _load() -> type[McpHttp]:
    from agent_memory.mcp.http import McpHttp

    return McpHttp


def routes_of(method: str, name: str, serve: Callable[[AsgiScope, Receive, Send], Any]) -> list[Route]:
    """The paths of one endpoint, with and without a namespace, with and without a trailing slash."""
    paths = (f"/{name}", f"/{name}/", f"/{{namespace}}/{name}", f"/{{namespace}}/{name}/")
    return [Route(path, _Endpoint(path.rstrip("/"), serve), methods=[method], include_in_schema=False) for path in paths]


class _Endpoint:
    """An ASGI application behind a route, which the metrics know by its path's template."""

    def __init__(self, template: str, serve: Callable[[AsgiScope, Receive, Send], Any]) -> None:
        self.path_format = template
        self._serve = serve

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        scope["route"] = self
        namespace_in(scope)  # refused now, not as an error within an answer
        await self._serve(scope, receive, send)


def namespace_in(scope: AsgiScope) -> str | None:
    """The namespace in the request's path. Raises BadInput for what is none."""
    name: str | None = scope["path_params"].get("namespace")
    if name is None:
        return None
    if "\ufffd" in name:
        raise BadInput("must be percent-encoded UTF-8", field="namespace", where="path")
    try:
        return _IDENTIFIER.validate_python(name)
    except ValidationError as error:
        raise BadInput(error.errors()[0]["msg"], field="namespace", where="path") from None
