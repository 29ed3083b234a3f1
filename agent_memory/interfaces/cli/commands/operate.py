"""Define the commands health, migrate, backup, rebuild and accept-store."""

from __future__ import annotations

from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Annotated, Literal

import typer

from agent_memory.foundation.core.errors import StartupError
from agent_memory.foundation.core.listing import counted
from agent_memory.interfaces.cli.decorators import Answer, prints
from agent_memory.interfaces.cli.options import DataDir, RedisUrl, Url, named_server
from agent_memory.interfaces.cli.output import progress, report, shown_server

_HEALTH_SECONDS = 5.0
_KEYS = "prefix of the old server's keys"


@prints
def health(url: Url = None) -> Answer:
    """Check that the API is responding, for container health checks. Exit with code 0 if it is."""
    # Import little, because containers run this check every few seconds.
    import http.client
    import urllib.error
    import urllib.request

    base = (url or named_server() or "").rstrip("/")
    if not base:
        from agent_memory.foundation.core.settings import load_settings

        base = f"http://127.0.0.1:{load_settings().server.port}"
    # Ignore proxies in the environment, because the check calls this machine.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"{base}/v1/health", timeout=_HEALTH_SECONDS) as answer:
            status = answer.status
    except urllib.error.HTTPError as error:
        status = error.code
    except (OSError, ValueError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        raise StartupError(f"no server answers at {shown_server(base)}: {reason}") from error
    if status != 200:
        raise StartupError(f"the server at {shown_server(base)} answers /v1/health with status {status}")
    report(f"server {shown_server(base)}")
    return Answer({"server": shown_server(base), "status": "ok"}, [])


@prints
def migrate(
    source: Annotated[str | None, typer.Option("--from", metavar="URL", help="the old server's Redis (default: REDIS_URL)")] = None,
    target: Annotated[str | None, typer.Option("--to", metavar="URL", help="target Redis (default: REDIS_URL or the embedded one)")] = None,
    data_dir: DataDir = None,
    tenant: Annotated[str, typer.Option(metavar="NAME", help="tenant that receives the data")] = "default",
    memory_prefix: Annotated[str, typer.Option(envvar="REDISVL_INDEX_PREFIX", metavar="PREFIX", help=_KEYS)] = "memory_idx",
    session_prefix: Annotated[str, typer.Option(envvar="WORKING_MEMORY_INDEX_PREFIX", metavar="PREFIX", help=_KEYS)] = "working_memory:",
    vectors: Annotated[Literal["auto", "reuse", "embed"], typer.Option(help="auto: reuse if a comparison shows the same model")] = "auto",
    extract: Annotated[bool, typer.Option(help="create memories from messages that the old server extracted no facts from")] = True,
    batch_size: Annotated[int | None, typer.Option(min=1, help="number of keys to read at once")] = None,
    yes: Annotated[bool, typer.Option("--yes/--dry-run", "-y", help="import, instead of only showing what would happen")] = False,
) -> Answer:
    """Copy the archived server's data into this server. Safe to repeat.

    The old Redis is never changed.
    """
    from agent_memory.interfaces.cli.commands import migrate as moving

    options = moving.MoveOptions(dry_run=not yes, page=batch_size, vectors=vectors, extract=extract)
    report = moving.move(source, target, data_dir, tenant, moving.OldPrefixes(memory_prefix, session_prefix), options)
    return Answer(report.model_dump(mode="json", exclude={"complete"}), report.lines())


@prints
def backup(folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="new folder for the copy")], data_dir: DataDir = None) -> Answer:
    """Copy the data of an embedded Redis, even while a server is using it."""
    from agent_memory.foundation.embedded.copying import copy_data_dir
    from agent_memory.interfaces.cli.store import settings_with

    settings = settings_with(None, data_dir)
    if settings.redis.url is not None:
        raise StartupError("REDIS_URL names a Redis of your own: back it up in its own way")
    with progress("copying") as update:
        copy_data_dir(settings.redis.data_dir, folder, lambda copied, total: update(completed=copied, total=total))
    return Answer({"folder": str(folder)}, [f"copied to {folder}; start a server on it with --data-dir"])


@prints
def rebuild(
    redis_url: RedisUrl = None,
    data_dir: DataDir = None,
    embed: Annotated[bool, typer.Option("--embed", help="workers also recreate all vectors")] = False,
) -> Answer:
    """Rebuild the search indexes from stored data. Stop all servers and workers first."""
    import asyncio

    from agent_memory.features.memories.upkeep.reindex import Reindexer
    from agent_memory.interfaces.cli.store import open_store, settings_of_store
    from agent_memory.runtime import open_runtime

    options = "--redis-url or --data-dir"
    settings = settings_of_store("rebuild", options, redis_url, data_dir)

    async def run() -> Answer:
        done: Counter[str] = Counter()
        async with open_store(settings, options) as store, open_runtime(settings, store.url, data_dir=store.data_dir) as home:
            reindexers = [runtime[Reindexer] for runtime in home.all]
            for runtime in home.all:
                runtime.watch.expect(())  # The watch would report and restore the indexes that a rebuild removes.
            with progress("building the indexes", sum(len(reindexer.schemas) for reindexer in reindexers)) as update:
                for reindexer in reindexers:
                    async for name, count in reindexer.rebuild_indexes():
                        done[name] += count
                        update(advance=1)
                    done["to_embed"] += await reindexer.mark_all_memories() if embed else 0
        report(f"store {store.description}")
        indexed = counted({name: done[name] for name in ("memories", "vectors", "sessions")})
        to_embed = counted({"memories": done["to_embed"]})
        return Answer(done, [f"indexed: {indexed}", f"get new vectors from the workers: {to_embed}"][: 2 if embed else 1])

    return asyncio.run(run())


@prints
def accept_store(redis_url: RedisUrl = None, data_dir: DataDir = None) -> Answer:
    """Accept the store in Redis, even if it is empty or different from the previous one."""
    import asyncio

    from agent_memory.foundation.embedded.server import embedded_redis, running_redis
    from agent_memory.foundation.storage.connection import shown_url
    from agent_memory.foundation.storage.keyspace import Keys
    from agent_memory.foundation.storage.store_marker import StoreFile
    from agent_memory.foundation.storage.store_watch import accept_store as accept
    from agent_memory.interfaces.cli.store import settings_with

    settings = settings_with(redis_url or None, data_dir)
    options, folder = settings.redis, settings.redis.data_dir.expanduser().absolute()
    if options.url is None and not folder.is_dir():
        raise StartupError(f"there is no store in {folder}: set DATA_DIR or --data-dir, or REDIS_URL")
    buckets = [Keys(options.key_prefix, number) for number in range(options.buckets)]

    async def run() -> Answer:
        async with AsyncExitStack() as stack:
            if options.url is not None:
                url, file = options.url.get_secret_value(), None
            else:  # a server may be using it now
                url = running_redis(folder) or (await stack.enter_async_context(embedded_redis(folder, port=options.embedded_port))).url
                file = StoreFile(folder)
            accepted = await accept(url, buckets, file, command_timeout=options.command_timeout_seconds)
        stores, lines = list[dict[str, str | None]](), list[str]()
        for keys, (before, now) in zip(buckets, accepted, strict=True):
            stores.append({"redis": shown_url(url), "keys": keys.root, "store": now.id, "lost": before.lost})
            what = "" if before.id else ", which is new and empty" if before.lost is None else f", which is empty, instead of {before.lost}"
            lines.append(f"accepted the store {now.id}{what}: {shown_url(url)}, keys {keys.root}")
        return Answer(stores, lines)

    return asyncio.run(run())
