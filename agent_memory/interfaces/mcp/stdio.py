"""Serve MCP over stdin and stdout to the client that started this process."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any, cast

import anyio
from mcp.server import Server
from mcp.server.stdio import stdio_server
from starlette.requests import Request

from agent_memory.features.access.credentials import Authenticator
from agent_memory.foundation.api.principals import EVERYBODY, scope_of
from agent_memory.foundation.core.errors import StartupError
from agent_memory.foundation.core.input.lone_surrogates import repair_json
from agent_memory.foundation.core.mcp_tools import Caller
from agent_memory.foundation.core.settings import Settings
from agent_memory.interfaces.mcp.server import build_server
from agent_memory.runtime import Runtime

_WAITING_LINES = 16


class StdioServer:
    """Serves MCP until the client closes stdin or until `stop` is called.

    Raises StartupError if required credentials are missing.
    """

    def __init__(self, settings: Settings, runtime: Runtime) -> None:
        self._settings = settings
        self._runtime = runtime
        self._token = settings.mcp.token
        if settings.auth.required and self._token is None:
            raise StartupError(f"AUTH_MODE={settings.auth.mode}: give the client's API key or token in MCP_TOKEN")
        self._server: Server[Any] = build_server(settings, runtime, self.find_caller)
        self._serving = anyio.CancelScope()
        self._answers = asyncio.Event()

    async def run(self) -> None:
        """Handle calls. Nothing but the protocol may write to stdout."""
        with self._serving:
            async with stdio_server(stdin=cast("anyio.AsyncFile[str]", _Lines())) as (incoming, outgoing):
                self._answers.set()
                await self._server.run(incoming, outgoing, self._server.create_initialization_options())

    async def find_caller(self, request: Request | None) -> Caller:
        """Return the owner of MCP_TOKEN, or `EVERYBODY` if the server requires no credentials.

        Raises any error from the credential gate.
        """
        settings = self._settings
        # The key is checked for each call, so a revoked key ends access here, too.
        caller = (
            await self._runtime[Authenticator].gate.admit(self._token.get_secret_value())
            if settings.auth.required and self._token
            else EVERYBODY
        )
        return Caller.of(scope_of(caller), settings.mcp.namespace, settings.mcp.user_id)

    async def started(self) -> None:
        """Wait until the server handles calls."""
        await self._answers.wait()

    def drain(self) -> bool:
        """Do nothing, because the only client cannot switch to another process."""
        return False

    def stop(self) -> None:
        self._serving.cancel()


class _Lines:
    """Iterates over the lines of stdin. The thread that reads them is abandoned at the end."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._lines: asyncio.Queue[str | None] = asyncio.Queue(_WAITING_LINES)

    async def __aiter__(self) -> AsyncIterator[str]:
        threading.Thread(target=self._read, name="stdin", daemon=True).start()
        while (line := await self._lines.get()) is not None:
            yield line

    def _read(self) -> None:
        # Do not use sys.stdin: the interpreter needs its lock at exit.
        with suppress(RuntimeError, OSError), open(0, "rb", closefd=False) as stdin:  # RuntimeError: the loop is closed
            for line in stdin:
                repaired = repair_json(line)
                self._put((line if repaired is None else repaired.body + b"\n").decode("utf-8", "replace"))
            self._put(None)

    def _put(self, line: str | None) -> None:
        asyncio.run_coroutine_threadsafe(self._lines.put(line), self._loop).result()
