"""Implement `agent-memory migrate`."""

from __future__ import annotations

import asyncio
from pathlib import Path
from urllib.parse import urlsplit

from agent_memory.features.transfer.archived_server.layout import OldKind, OldPrefixes, open_old
from agent_memory.features.transfer.archived_server.migration import MigrationService, MoveOptions, Report
from agent_memory.features.transfer.imports import ImportService
from agent_memory.foundation.api.principals import scope_of_work
from agent_memory.foundation.core.errors import ErasureUnderWay, RedisUnavailable, StartupError, TooMany
from agent_memory.foundation.core.settings import Settings, load_settings
from agent_memory.foundation.storage.connection import shown_url
from agent_memory.foundation.storage.keyspace import Keys
from agent_memory.interfaces.cli.output import progress, report
from agent_memory.interfaces.cli.store import open_store, settings_of_store
from agent_memory.runtime import open_runtime

_STORE_OPTIONS = "--to or --data-dir"


def move(source: str | None, target: str | None, data_dir: Path | None, tenant: str, prefixes: OldPrefixes, options: MoveOptions) -> Report:
    """Copy the archived server's data, or report what would be copied. Raises StartupError."""
    settings = settings_of_store("migrate", _STORE_OPTIONS, target, data_dir)
    if source is None and (own := load_settings().redis.url) is not None:
        source = own.get_secret_value()
    if source is None or urlsplit(source).scheme not in ("redis", "rediss", "unix"):
        form = "redis://[user:password@]host:6379/0 (or rediss://, unix://); of a cluster, move each node"
        raise StartupError(f"specify where the old server's data is, with --from or REDIS_URL: {form}")
    try:
        return asyncio.run(_move(settings, source, tenant, prefixes, options))
    except (RedisUnavailable, TooMany, ErasureUnderWay) as error:
        raise StartupError(f"{error.message}: run the command again to continue") from error


async def _move(settings: Settings, source: str, tenant: str, prefixes: OldPrefixes, options: MoveOptions) -> Report:
    ours = Keys(settings.redis.key_prefix).root.removesuffix("0}:")
    parts = urlsplit(source)
    display_url = shown_url(source) + (parts.path if parts.hostname else "")
    async with (
        open_old(source, display_url, prefixes, ours=ours, command_timeout=max(settings.redis.command_timeout_seconds, 30.0)) as old,
        open_store(settings, _STORE_OPTIONS, new="pretend" if options.dry_run else "create") as store,
        open_runtime(settings, store.url, data_dir=store.data_dir, begin=store.begun or not options.dry_run) as home,
    ):
        report(f"store {store.description}")
        runtime = home.of(tenant)
        service = MigrationService(old, runtime[ImportService], runtime.embedder, runtime.spec)
        with progress("moving") as update:

            def on_progress(kind: OldKind, processed: int, total: int) -> None:
                update(description=f"moving: {kind.value}, {processed} of {total}", completed=processed, total=max(1, total))

            return await service.run(scope_of_work(tenant), options, on_progress)
