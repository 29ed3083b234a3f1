"""Open an existing store for a command: the one at REDIS_URL, else the embedded one. No command creates a store."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from agent_memory.foundation.core.errors import StartupError
from agent_memory.foundation.core.logs import configure_logging
from agent_memory.foundation.core.settings import Settings, load_settings
from agent_memory.foundation.embedded.server import embedded_redis, has_data
from agent_memory.foundation.storage.cluster import is_begun
from agent_memory.foundation.storage.connection import shown_url
from agent_memory.foundation.storage.keyspace import Keys
from agent_memory.interfaces.cli.options import local_server, named_server, shown_server


@dataclass(frozen=True, slots=True)
class Store:
    """An open store. `data_dir` is the data directory if Redis is embedded."""

    url: str
    description: str
    data_dir: Path | None = None


def settings_with(redis_url: str | None, data_dir: str | Path | None, **overrides: str) -> Settings:
    """Return the settings for a store. A data directory without `redis_url` overrides REDIS_URL. From now on, log only warnings."""
    settings = load_settings(REDIS_URL=redis_url, DATA_DIR=data_dir, **overrides)
    configure_logging(settings.server.model_copy(update={"log_level": "WARNING"}))
    if data_dir is not None and redis_url is None:
        settings = settings.model_copy(update={"redis": settings.redis.model_copy(update={"url": None})})
    return settings


def check_store_named(command: str, options: str, named: bool) -> None:
    """Raise StartupError if the environment names a server, and the user did not name a store with `options`."""
    if (server := named_server()) is not None and not named:
        raise StartupError(
            f"{command} works on a store itself, and AGENT_MEMORY_URL names the server {shown_server(server)}: "
            f"name the store with {options}"
        )


@asynccontextmanager
async def existing_store(settings: Settings, *, must_rest: bool = False, begun: bool = True) -> AsyncGenerator[Store]:
    """Open the store specified in the settings.

    Raises StartupError with a one-line message if there is no store, or if a running server uses the embedded store. In
    the latter case, the message tells the user to send the request to that server, or to stop the server if `must_rest`
    is set. With `begun`, also raises StartupError if no server has used this Redis with this KEY_PREFIX.
    """
    options = settings.redis
    if options.url is not None:
        yield await _look_at(settings, options.url.get_secret_value(), None, begun=begun)
        return
    folder = options.data_dir.expanduser().absolute()
    if not has_data(folder):
        raise StartupError(f"there is no store in {folder}: name a server (--url, AGENT_MEMORY_URL) or a store (REDIS_URL, DATA_DIR)")
    async with AsyncExitStack() as stack:
        try:
            engine = await stack.enter_async_context(embedded_redis(folder, port=options.embedded_port))
        except StartupError as error:
            if "in use" not in error.message:
                raise
            hint = "stop it first" if must_rest else f"ask that one: --url {local_server()}"
            raise StartupError(f"{error.message}; {hint}") from error
        yield await _look_at(settings, engine.url, folder, begun=begun)


async def _look_at(settings: Settings, url: str, folder: Path | None, *, begun: bool) -> Store:
    home, name = Keys(settings.redis.key_prefix), f"in {folder} (embedded Redis)" if folder else shown_url(url)
    is_used = await is_begun(url, home, command_timeout=settings.redis.command_timeout_seconds)
    if begun and not is_used:
        raise StartupError(f"no server has used the store {name} with KEY_PREFIX {home.prefix}: check REDIS_URL, DATA_DIR and KEY_PREFIX")
    return Store(url, f"{name}, keys {home.prefix}:" + ("" if is_used else " (no server has used it yet)"), folder)
