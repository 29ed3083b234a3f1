"""Open a store for a command."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from agent_memory.foundation.core.errors import StartupError
from agent_memory.foundation.core.logs import configure_logging
from agent_memory.foundation.core.settings import Settings, load_settings
from agent_memory.foundation.embedded.server import embedded_redis, has_data
from agent_memory.foundation.storage.cluster import is_begun
from agent_memory.foundation.storage.connection import shown_url
from agent_memory.foundation.storage.keyspace import Keys
from agent_memory.interfaces.cli.options import named_server
from agent_memory.interfaces.cli.output import shown_server


@dataclass(frozen=True, slots=True)
class Store:
    """An open store. `data_dir` is set if Redis is embedded. `begun` is False until first used."""

    url: str
    description: str
    data_dir: Path | None
    begun: bool


def settings_with(redis_url: str | None, data_dir: str | Path | None, **overrides: str) -> Settings:
    """Return the settings, and log only warnings and above.

    `data_dir` overrides REDIS_URL from the environment.
    """
    settings = load_settings(REDIS_URL=redis_url, DATA_DIR=data_dir, **overrides)
    configure_logging(settings.server.model_copy(update={"log_level": "WARNING"}))
    if data_dir is not None and redis_url is None:
        settings = settings.model_copy(update={"redis": settings.redis.model_copy(update={"url": None})})
    return settings


def settings_of_store(command: str, options: str, redis_url: str | None, data_dir: Path | None) -> Settings:
    """Return the settings for a store. Raises StartupError if only AGENT_MEMORY_URL is set."""
    if (server := named_server()) is not None and not redis_url and not data_dir:
        server = f"AGENT_MEMORY_URL names the server {shown_server(server)}"
        raise StartupError(f"{command} works on a store itself, and {server}: name the store with {options}")
    return settings_with(redis_url or None, data_dir)


@asynccontextmanager
async def open_store(
    settings: Settings, options: str = "", *, new: Literal["refuse", "accept", "create", "pretend"] = "refuse"
) -> AsyncGenerator[Store]:
    """Open the configured store. Raises StartupError, e.g. if a server is using the embedded store.

    `new` says what to do if there is no data: refuse the store, accept it only at REDIS_URL, create
    it, or open an empty one instead ("pretend"). Error messages recommend `options`.
    """
    redis, home = settings.redis, Keys(settings.redis.key_prefix)
    async with AsyncExitStack() as stack:
        folder: Path | None = None
        if redis.url is not None:
            url, name = redis.url.get_secret_value(), shown_url(redis.url.get_secret_value())
        else:
            folder = redis.data_dir.expanduser().absolute()
            name = f"in {folder} (embedded Redis)"
            if new in ("refuse", "accept") and not has_data(folder):
                targets = f"a store ({options}" if options else "a server (--url, AGENT_MEMORY_URL) or a store (--data-dir"
                raise StartupError(f"there is no store in {folder}: name {targets}, REDIS_URL, DATA_DIR)")
            if new == "pretend" and not has_data(folder):
                folder = Path(stack.enter_context(TemporaryDirectory(prefix="am-")))
            try:
                url = (await stack.enter_async_context(embedded_redis(folder, port=redis.embedded_port))).url
            except StartupError as error:
                if "in use" not in error.message:
                    raise
                hint = "stop it first" if options else "pass the address of its server as --url, or stop it"
                raise StartupError(f"{error.message}; {hint}") from error
        begun = await is_begun(url, home, command_timeout=redis.command_timeout_seconds)
        if new == "refuse" and not begun:
            hint = "check REDIS_URL, DATA_DIR and KEY_PREFIX"
            raise StartupError(f"no server has used the store {name} with KEY_PREFIX {home.prefix}: {hint}")
        yield Store(url, f"{name}, keys {home.prefix}:" + ("" if begun else " (no server has used it yet)"), folder, begun)
