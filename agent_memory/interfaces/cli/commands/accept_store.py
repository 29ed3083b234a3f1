"""`agent-memory accept-store`: the operator says that the store that Redis holds now is the right one, though it is empty or another."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

from agent_memory.foundation.core.errors import RedisUnavailable, StartupError
from agent_memory.foundation.core.logs import configure_logging
from agent_memory.foundation.core.settings import Settings, load_settings
from agent_memory.foundation.embedded.server import embedded_redis, running_redis
from agent_memory.foundation.storage.connection import shown_url
from agent_memory.foundation.storage.keyspace import Keys
from agent_memory.foundation.storage.store_marker import StoreFile
from agent_memory.foundation.storage.store_watch import accept_store
from agent_memory.interfaces.cli.run import check_redis_url


def accept(overrides: dict[str, str]) -> None:
    """Accepts, and says what. Raises StartupError in one line."""
    settings = load_settings(**overrides)
    configure_logging(settings.server.model_copy(update={"log_level": "WARNING"}))
    check_redis_url(settings)
    folder = settings.redis.data_dir.expanduser().absolute()
    if settings.redis.url is None and not folder.is_dir():
        raise StartupError(f"there is no store in {folder}: set DATA_DIR or --data-dir, or REDIS_URL")
    try:
        asyncio.run(_accept(settings, folder))
    except RedisUnavailable as error:
        raise StartupError(error.message) from error


async def _accept(settings: Settings, folder: Path) -> None:
    """`folder` is that of the embedded Redis, which a server may be running at this moment."""
    options = settings.redis
    buckets = [Keys(options.key_prefix, number) for number in range(options.buckets)]
    async with AsyncExitStack() as stack:
        if options.url is not None:
            url, file = options.url.get_secret_value(), None
        else:
            url = running_redis(folder) or (await stack.enter_async_context(embedded_redis(folder, port=options.embedded_port))).url
            file = StoreFile(folder)
        accepted = await accept_store(url, buckets, file, command_timeout=options.command_timeout_seconds)
    for keys, (before, now) in zip(buckets, accepted, strict=True):
        what = "" if before.id else ", which is new and empty," if before.lost is None else f", which is empty, instead of {before.lost}"
        print(f"{shown_url(url)} {keys.root} accepted is the store {now.id}{what}".rstrip(","))
