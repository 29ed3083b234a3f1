"""The store that a command opens by itself: that of REDIS_URL, else the embedded one. It must be there: no command begins one."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from agent_memory.foundation.core.errors import StartupError
from agent_memory.foundation.core.settings import Settings, load_settings
from agent_memory.foundation.embedded.server import embedded_redis, has_data
from agent_memory.foundation.storage.cluster import locate_buckets, store_begun
from agent_memory.foundation.storage.connection import shown_url
from agent_memory.foundation.storage.keyspace import Keys
from agent_memory.interfaces.cli.run import check_redis_url
from agent_memory.interfaces.cli.target import server_here


@dataclass(frozen=True, slots=True)
class Store:
    """An open store. `begun`: a server has used it; else its Redis holds nothing of ours but API keys perhaps.

    `data_dir` is where an embedded Redis keeps it.
    """

    url: str
    shown: str
    begun: bool
    data_dir: Path | None = None


def settings_with(redis_url: str | None, data_dir: str | Path | None) -> Settings:
    """The settings, with the store that the command line names: REDIS_URL does not come before a data directory that was named."""
    settings = load_settings(REDIS_URL=redis_url, DATA_DIR=data_dir)
    if data_dir is not None and redis_url is None:
        settings = settings.model_copy(update={"redis": settings.redis.model_copy(update={"url": None})})
    return settings


@asynccontextmanager
async def existing_store(settings: Settings, *, must_rest: bool = False, begun: bool = True) -> AsyncGenerator[Store]:
    """Opens the store of the settings; `must_rest`: a server that uses it must be stopped first, not asked instead.

    Raises StartupError in one line when there is none; with `begun` also for a Redis that no server has used under this KEY_PREFIX.
    """
    check_redis_url(settings)
    options = settings.redis
    if options.url is not None:
        yield await _looked_at(settings, options.url.get_secret_value(), None, begun)
        return
    folder = options.data_dir.expanduser().absolute()
    if not has_data(folder):
        raise StartupError(f"there is no store in {folder}: name a server (--url, AGENT_MEMORY_URL) or a store (REDIS_URL, DATA_DIR)")
    async with _start_embedded(settings, must_rest) as url:
        yield replace(await _looked_at(settings, url, f"in {folder} (embedded Redis)", begun), data_dir=folder)


@asynccontextmanager
async def _start_embedded(settings: Settings, must_rest: bool) -> AsyncGenerator[str]:
    async with AsyncExitStack() as stack:
        try:
            engine = await stack.enter_async_context(embedded_redis(settings.redis.data_dir, port=settings.redis.embedded_port))
        except StartupError as error:
            if "in use" not in error.message:
                raise
            hint = "stop it first" if must_rest else f"ask that one: --url {server_here(settings)}"
            raise StartupError(f"{error.message}; {hint}") from error
        yield engine.url


async def _looked_at(settings: Settings, url: str, shown: str | None, must_be_begun: bool) -> Store:
    home, name = Keys(settings.redis.key_prefix), shown or shown_url(url)
    begun = await is_begun(settings, url)
    if must_be_begun and not begun:
        raise StartupError(f"no server has used the store {name} with KEY_PREFIX {home.prefix}: check REDIS_URL, DATA_DIR and KEY_PREFIX")
    return Store(url, f"{name}, keys {home.prefix}:" + ("" if begun else " (no server has used it yet)"), begun)


async def is_begun(settings: Settings, url: str) -> bool:
    """Whether a server has used the store in a Redis. Raises StartupError when that cannot be reached."""
    home, timeout = Keys(settings.redis.key_prefix), settings.redis.command_timeout_seconds
    (server,) = await locate_buckets(url, [home], shown=shown_url(url), command_timeout=timeout)
    client = server.connect(pool_size=1, command_timeout=timeout)
    try:
        return await store_begun(client, home)
    finally:
        await client.aclose()
