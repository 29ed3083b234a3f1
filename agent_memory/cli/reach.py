"""How commands reach the memories: over a server's REST API, or the same API within this process on the configured Redis."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from agent_memory.api.app import create_app
from agent_memory.cli.run import check_redis_url
from agent_memory.embedded_redis import embedded_redis
from agent_memory.errors import NotFound, StartupError
from agent_memory.logs import configure_logging
from agent_memory.runtime import open_runtime
from agent_memory.settings import Settings, load_settings
from agent_memory_client.models import MEDIA_TYPE

_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Place:
    """Which memories are meant: those of the server at `url`, else those of the configured Redis."""

    url: str | None = None
    api_key: str | None = None


class Api:
    """The REST API, wherever it runs."""

    def __init__(self, client: httpx.AsyncClient, shown: str) -> None:
        self._client = client
        self._shown = shown

    async def call(
        self, method: str, path: str, query: Mapping[str, Any] | None = None, body: Any = None, *, lines: bytes | None = None
    ) -> Any:
        """The JSON of an answer. Parameters that are None are left out. Raises NotFound, and StartupError for every other refusal."""
        sent: dict[str, Any] = {"json": body} if lines is None else {"content": lines, "headers": {"Content-Type": MEDIA_TYPE}}
        try:
            answer = await self._client.request(method, path, params=_given(query), **sent)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise StartupError(f"no server answers at {self._shown}: {error or type(error).__name__}") from error
        return self._understood(answer)

    async def stream(self, method: str, path: str, query: Mapping[str, Any] | None = None) -> AsyncGenerator[bytes]:
        """A long answer, piece by piece. Raises as `call`."""
        try:
            async with self._client.stream(method, path, params=_given(query)) as answer:
                if answer.status_code != 200:
                    await answer.aread()
                    self._understood(answer)
                async for piece in answer.aiter_bytes():
                    yield piece
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise StartupError(f"{self._shown} broke off: {error or type(error).__name__}") from error

    def _understood(self, answer: httpx.Response) -> Any:
        try:
            found = answer.json()
        except ValueError as error:
            raise StartupError(f"{self._shown} is not a memory server: status {answer.status_code}, no JSON") from error
        detail = found.get("detail", found) if isinstance(found, dict) else found
        if answer.status_code == 404:
            raise NotFound(str(detail))
        if answer.status_code != 200:
            raise StartupError(f"refused: {_line(detail)}")
        return found


def _given(query: Mapping[str, Any] | None) -> dict[str, Any]:
    return {name: value for name, value in (query or {}).items() if value is not None}


def _line(detail: Any) -> str:
    """What a refusal says: its text, or the problems of a 422."""
    if not isinstance(detail, list):
        return str(detail)
    return "; ".join(f"{'.'.join(map(str, one['loc'][1:]))}: {one['msg']}" for one in detail)


@asynccontextmanager
async def reach(place: Place) -> AsyncGenerator[Api]:
    """The API of a place. Who can read the settings and reach Redis needs no key: that is the operator. Raises StartupError."""
    if place.url is not None:
        headers = {"X-API-Key": place.api_key} if place.api_key else {}
        base = place.url.rstrip("/")
        try:
            async with httpx.AsyncClient(base_url=base, headers=headers, timeout=_SECONDS, trust_env=False) as client:
                yield Api(client, base)
        except httpx.InvalidURL as error:
            raise StartupError(f"--url {base}: {error}") from error
        return
    settings = load_settings(DISABLE_AUTH="true")
    configure_logging(settings.server.model_copy(update={"log_level": "WARNING"}))
    check_redis_url(settings)
    if settings.redis.url is not None:
        async with _within(settings, settings.redis.url.get_secret_value()) as api:
            yield api
        return
    if not settings.redis.data_dir.is_dir():
        raise StartupError(f"there are no memories in {settings.redis.data_dir}: give --url, or set REDIS_URL or DATA_DIR")
    async with AsyncExitStack() as stack:
        try:
            engine = await stack.enter_async_context(embedded_redis(settings.redis.data_dir, port=settings.redis.embedded_port))
        except StartupError as error:
            if "in use" not in error.message:
                raise
            raise StartupError(f"{error.message}; ask that one: --url http://127.0.0.1:{settings.server.port}") from error
        yield await stack.enter_async_context(_within(settings, engine.url))


@asynccontextmanager
async def _within(settings: Settings, redis_url: str) -> AsyncGenerator[Api]:
    async with open_runtime(settings, redis_url) as runtime:
        transport = httpx.ASGITransport(create_app(settings, runtime))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost", timeout=None) as client:
            yield Api(client, "this process")
