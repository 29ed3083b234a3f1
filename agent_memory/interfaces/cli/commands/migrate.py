"""Run `agent-memory migrate`: move data from the archived server's Redis, or only report what would happen."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

from agent_memory.features.transfer.archived_server.layout import OldKind, OldPrefixes, open_old
from agent_memory.features.transfer.archived_server.migration import MigrationService, MoveOptions, OnProgress, Report
from agent_memory.features.transfer.imports import ImportService
from agent_memory.foundation.api.principals import scope_of_work
from agent_memory.foundation.core.errors import ErasureUnderWay, RedisUnavailable, StartupError, TooMany
from agent_memory.foundation.core.settings import Settings, load_settings
from agent_memory.foundation.embedded.server import embedded_redis, has_data
from agent_memory.foundation.storage.cluster import is_begun
from agent_memory.foundation.storage.connection import shown_url
from agent_memory.foundation.storage.keyspace import Keys
from agent_memory.interfaces.cli.options import announce, working
from agent_memory.interfaces.cli.store import check_store_named, settings_with
from agent_memory.runtime import Runtime, open_runtime


def move(source: str | None, target: str | None, data_dir: Path | None, tenant: str, prefixes: OldPrefixes, options: MoveOptions) -> Report:
    """Move data, or report what would be moved. Raises StartupError with a one-line message."""
    check_store_named("migrate", "--to or --data-dir", bool(target or data_dir))
    settings = settings_with(target, data_dir)
    if source is None and (own := load_settings().redis.url) is not None:
        source = own.get_secret_value()
    if source is None:
        raise StartupError("specify where the old server's data is: --from redis://host:6379/0, or REDIS_URL")
    if urlsplit(source).scheme not in ("redis", "rediss", "unix"):
        raise StartupError(
            "--from: must look like redis://[user:password@]host:6379/0 (or rediss://, unix://); of a cluster, move each node"
        )
    try:
        with working("moving") as status:

            def on_progress(kind: OldKind, processed: int, total: int) -> None:
                status.update(f"{kind.value}: {processed} of {total}")

            return asyncio.run(_move(settings, source, tenant, prefixes, options, on_progress))
    except (RedisUnavailable, TooMany, ErasureUnderWay) as error:
        raise StartupError(f"{error.message}: run the command again to continue") from error


async def _move(
    settings: Settings, source: str, tenant: str, prefixes: OldPrefixes, options: MoveOptions, on_progress: OnProgress
) -> Report:
    ours = Keys(settings.redis.key_prefix).root.removesuffix("0}:")
    parts = urlsplit(source)
    display_url = shown_url(source) + (parts.path if parts.hostname else "")
    async with (
        open_old(source, display_url, prefixes, ours=ours, command_timeout=max(settings.redis.command_timeout_seconds, 30.0)) as old,
        _open_target(settings, begin=not options.dry_run) as home,
    ):
        runtime = home.of(tenant)
        service = MigrationService(old, runtime[ImportService], runtime.embedder, runtime.spec)
        return await service.run(scope_of_work(tenant), options, on_progress)


@asynccontextmanager
async def _open_target(settings: Settings, *, begin: bool) -> AsyncGenerator[Runtime]:
    """Open the store that receives the data. With `begin`, create a missing store. Otherwise, a missing store counts as empty."""
    async with AsyncExitStack() as stack:
        folder: Path | None = None
        if settings.redis.url is not None:
            url = settings.redis.url.get_secret_value()
            home, timeout = Keys(settings.redis.key_prefix), settings.redis.command_timeout_seconds
            begun, description = begin or await is_begun(url, home, command_timeout=timeout), shown_url(url)
        else:
            data_folder = settings.redis.data_dir.expanduser().absolute()
            begun, description = begin or has_data(data_folder), f"in {data_folder} (embedded Redis)"
            folder = data_folder if begun else Path(stack.enter_context(TemporaryDirectory(prefix="am-")))
            url = (await stack.enter_async_context(embedded_redis(folder, port=settings.redis.embedded_port))).url
        runtime = await stack.enter_async_context(open_runtime(settings, url, data_dir=folder, begin=begun))
        announce("store", f"{description}, keys {runtime.keys.prefix}:" + ("" if begun else " (not made yet)"))
        yield runtime
