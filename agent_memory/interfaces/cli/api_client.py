"""How commands reach the memories: over a server's REST API, or the same API within this process on the configured Redis."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from agent_memory.foundation.core.errors import NotFound, StartupError
from agent_memory.foundation.core.logs import configure_logging
from agent_memory.foundation.core.settings import load_settings
from agent_memory.interfaces.cli.store import existing_store
from agent_memory.interfaces.cli.target import say_server, say_store, sentence, shown_server
from agent_memory.interfaces.http.app import create_app
from agent_memory.runtime import open_runtime
from agent_memory_client.models import MEDIA_TYPE, MEMORY_TYPES_HEADER, MemoryTypeEnum

_SECONDS = 60.0
_TYPES = {MEMORY_TYPES_HEADER: MemoryTypeEnum.PROCEDURAL.value}


@dataclass(frozen=True, slots=True)
class MemoryTarget:
    """Which memories are meant: those of the server at `url`, else those of the configured Redis."""

    url: str | None = None
    api_key: str | None = None


class Api:
    """The REST API, wherever it runs. Its first answer is reported by `say`: before it, only the error is of interest."""

    def __init__(self, client: httpx.AsyncClient, shown: str, say: Callable[[], None]) -> None:
        self._client = client
        self._shown = shown
        self._say: Callable[[], None] | None = say

    async def call(
        self, method: str, path: str, query: Mapping[str, Any] | None = None, body: Any = None, *, lines: bytes | None = None
    ) -> Any:
        """The JSON of an answer. Parameters that are None are left out. Raises NotFound, and StartupError for every other refusal."""
        sent: dict[str, Any] = {"json": body} if lines is None else {"content": lines, "headers": {"Content-Type": MEDIA_TYPE}}
        try:
            answer = await self._client.request(method, path, params=_without_none(query), **sent)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise StartupError(f"no server answers at {self._shown}: {error or type(error).__name__}") from error
        return self._read_body(answer)

    async def stream(self, method: str, path: str, query: Mapping[str, Any] | None = None) -> AsyncGenerator[bytes]:
        """A long answer, piece by piece. Raises as `call`."""
        try:
            async with self._client.stream(method, path, params=_without_none(query)) as answer:
                if answer.status_code != 200:
                    await answer.aread()
                    self._read_body(answer)
                self._say_once()
                async for piece in answer.aiter_bytes():
                    yield piece
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise StartupError(f"{self._shown} broke off: {error or type(error).__name__}") from error

    def _read_body(self, answer: httpx.Response) -> Any:
        try:
            body = answer.json()
        except ValueError as error:
            raise StartupError(f"{self._shown} is not a memory server: status {answer.status_code}, no JSON") from error
        if answer.status_code == 404:
            self._say_once()
            raise NotFound(sentence(body))
        if not answer.is_success:
            hint = " (--api-key, or AGENT_MEMORY_API_KEY)" if answer.status_code == 401 else ""
            raise StartupError(f"{self._shown} refuses: {sentence(body)}{hint}")
        self._say_once()
        return body

    def _say_once(self) -> None:
        if self._say is not None:
            self._say()
            self._say = None


def _without_none(query: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return {name: value for name, value in (query or {}).items() if value is not None} or None


@asynccontextmanager
async def reach(target: MemoryTarget) -> AsyncGenerator[Api]:
    """The API of a place. Who can read the settings and reach Redis needs no key: that is the operator. Raises StartupError."""
    if target.url is not None:
        headers = {"X-API-Key": target.api_key, **_TYPES} if target.api_key else _TYPES
        base, shown = target.url.rstrip("/"), shown_server(target.url)
        try:
            async with httpx.AsyncClient(base_url=base, headers=headers, timeout=_SECONDS, trust_env=False) as client:
                yield Api(client, shown, lambda: say_server(shown))
        except httpx.InvalidURL as error:
            raise StartupError(f"--url {shown}: {error}") from error
        return
    settings = load_settings(DISABLE_AUTH="true")
    configure_logging(settings.server.model_copy(update={"log_level": "WARNING"}))
    async with existing_store(settings) as store, open_runtime(settings, store.url, data_dir=store.data_dir) as runtime:
        transport = httpx.ASGITransport(create_app(settings, runtime))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost", headers=_TYPES, timeout=None) as client:
            yield Api(client, f"the store {store.shown}", lambda: say_store(store.shown))
