"""Connect commands to memories, through a server's REST API or by running that API in this process on the configured Redis."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Literal, cast
from urllib.parse import parse_qs

import httpx

from agent_memory.foundation.core.errors import NotFound, StartupError
from agent_memory.interfaces.cli.options import Target, announce, shown_server
from agent_memory_client import MemoryClientConfig, MemoryClientError, MemoryNotFoundError, MemoryServerError, MemoryUnavailableError
from agent_memory_client._wire.requests import Call, Method
from agent_memory_client.transport import Transport

_SECONDS = 60.0


class Api:
    """A server's or a store's REST API. The client's resource classes use `transport` and `config`."""

    def __init__(self, config: MemoryClientConfig, transport: Transport, kind: Literal["server", "store"], display_name: str) -> None:
        self.config = config
        self.transport = transport
        self._answered: tuple[Literal["server", "store"], str] | None = (kind, display_name)

    async def call(self, method: str, path: str, query: Mapping[str, Any] | None = None, body: Any = None) -> Any:
        """Send a request and return its JSON answer. Omit None parameters. Raises NotFound or MemoryClientError."""
        path, _, query_text = path.partition("?")
        given = {
            **parse_qs(query_text, keep_blank_values=True),
            **{name: value for name, value in (query or {}).items() if value is not None},
        }
        params = {name: value if isinstance(value, str | list) else json.dumps(value) for name, value in given.items()}
        try:
            answer = await self.transport.send(Call(cast("Method", method), path, params, body, idempotent=False))
        except MemoryNotFoundError as error:
            raise self.not_found(error) from error
        try:
            content = answer.json()
        except ValueError:
            raise MemoryClientError(f"this is not a memory server: status {answer.status_code}, and no JSON") from None
        self.announce()
        return content

    def not_found(self, error: MemoryNotFoundError) -> NotFound:
        """Convert a 404 into a NotFound error. Also announce the server, because it has answered."""
        self.announce()
        return NotFound(str(error))

    def announce(self) -> None:
        """Print which server or store answered, unless that was already printed."""
        if self._answered is not None:
            announce(*self._answered)
            self._answered = None


@asynccontextmanager
async def reach(target: Target) -> AsyncGenerator[Api]:
    """Open a target's API. A store needs no API key. Raises StartupError, and NotFound for a 404."""
    if target.url is not None:
        key = target.api_key or os.environ.get("AGENT_MEMORY_API_KEY") or None
        # Use our own transport, because httpx's default transport uses proxies from the environment.
        async with _open(target.url.rstrip("/"), key, httpx.AsyncHTTPTransport(), "server", shown_server(target.url)) as api:
            yield api
        return
    # A server's libraries take a second to import. Commands that ask a running server need only the client.
    from agent_memory.interfaces.cli.store import existing_store, settings_with
    from agent_memory.interfaces.http.app import create_app
    from agent_memory.runtime import open_runtime

    settings = settings_with(None, target.data_dir, DISABLE_AUTH="true")
    async with (
        existing_store(settings) as store,
        open_runtime(settings, store.url, data_dir=store.data_dir) as runtime,
        _open("http://localhost", None, httpx.ASGITransport(create_app(settings, runtime)), "store", store.description) as api,
    ):
        yield api


@asynccontextmanager
async def _open(
    url: str, key: str | None, wire: httpx.AsyncBaseTransport, kind: Literal["server", "store"], display_name: str
) -> AsyncGenerator[Api]:
    try:
        config = MemoryClientConfig(base_url=url, timeout=_SECONDS, api_key=key, max_retries=0)
        transport = Transport(config, wire)
        api = Api(config, transport, kind, display_name)
        try:
            yield api
        except MemoryNotFoundError as error:
            raise api.not_found(error) from error
        finally:
            await transport.close()
    except MemoryClientError as error:
        place = display_name if kind == "server" else f"the store {display_name}"
        status = error.status_code if isinstance(error, MemoryServerError) else None
        hint = " (--api-key, or AGENT_MEMORY_API_KEY)" if status == 401 else ""
        if status is None and isinstance(error, MemoryUnavailableError):
            place = f"no server answers at {place}"
        raise StartupError(f"{place}{'' if status is None else ' refuses'}: {error}{hint}") from error
