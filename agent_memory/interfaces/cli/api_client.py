"""Connect commands to the REST API of a server or a store."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast
from urllib.parse import parse_qs

import httpx

from agent_memory.foundation.core.errors import NotFound, StartupError
from agent_memory.interfaces.cli.output import progress, report, shown_server
from agent_memory_client import MemoryClientConfig, MemoryClientError, MemoryNotFoundError, MemoryServerError, MemoryUnavailableError
from agent_memory_client._wire.requests import Call, Method
from agent_memory_client.transport import Transport

_SECONDS = 60.0


class Api:
    """The REST API of a server or a store."""

    progress = staticmethod(progress)

    def __init__(self, config: MemoryClientConfig, transport: Transport, name: str) -> None:
        self.config = config
        self.transport = transport
        self._answered = name

    async def call(self, method: str, path: str, query: Mapping[str, Any] | None = None, body: Any = None) -> Any:
        """Send a request and return the JSON response. Raises MemoryClientError."""
        path, _, query_text = path.partition("?")
        given: dict[str, Any] = {**parse_qs(query_text, keep_blank_values=True), **(query or {})}
        params = {name: value if isinstance(value, str | list) else json.dumps(value) for name, value in given.items() if value is not None}
        answer = await self.transport.send(Call(cast("Method", method), path, params, body, idempotent=False))
        try:
            content = answer.json()
        except ValueError:
            raise MemoryClientError(f"this is not a memory server: status {answer.status_code}, and no JSON") from None
        self.announce()
        return content

    def announce(self) -> None:
        """Print which server or store the command uses, but only once."""
        if self._answered:
            report(self._answered)
            self._answered = ""


@asynccontextmanager
async def reach(url: str | None, api_key: str | None, data_dir: Path | None) -> AsyncGenerator[Api]:
    """Open the API of a server or store. Raises StartupError, or NotFound for a 404."""
    if url is not None:
        key = api_key or os.environ.get("AGENT_MEMORY_API_KEY") or None
        # Use our own transport, because httpx's default transport uses proxies from the environment.
        async with _open(url.rstrip("/"), key, httpx.AsyncHTTPTransport(), f"server {shown_server(url)}") as api:
            yield api
        return
    # A server's libraries take a second to import. Commands that ask a running server need only the client.
    from agent_memory.interfaces.cli.store import open_store, settings_with
    from agent_memory.interfaces.http.app import create_app
    from agent_memory.runtime import open_runtime

    settings = settings_with(None, data_dir, DISABLE_AUTH="true")
    settings = settings.model_copy(update={"auth": settings.auth.without_logins()})
    async with (
        open_store(settings) as store,
        open_runtime(settings, store.url, data_dir=store.data_dir) as runtime,
        _open("http://localhost", None, httpx.ASGITransport(create_app(settings, runtime)), f"store {store.description}") as api,
    ):
        yield api


@asynccontextmanager
async def _open(url: str, key: str | None, wire: httpx.AsyncBaseTransport, name: str) -> AsyncGenerator[Api]:
    try:
        config = MemoryClientConfig(base_url=url, timeout=_SECONDS, api_key=key, max_retries=0)
        api = Api(config, Transport(config, wire), name)
        try:
            yield api
            api.announce()
        except MemoryNotFoundError as error:
            api.announce()
            raise NotFound(str(error)) from error
        finally:
            await api.transport.close()
    except MemoryClientError as error:
        status = error.status_code if isinstance(error, MemoryServerError) else None
        absent = f"no {name.replace(' ', ' answers at ', 1)}" if isinstance(error, MemoryUnavailableError) else f"the {name}"
        hint = " (--api-key, or AGENT_MEMORY_API_KEY)" if status == 401 else ""
        raise StartupError(f"{f'the {name} refuses' if status else absent}: {error}{hint}") from error
