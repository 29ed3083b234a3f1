"""`agent-memory migrate`: moves in what the archived server left in its Redis; says first what would happen."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal
from urllib.parse import urlsplit

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from agent_memory.features.memories.commit import MemoryCommits
from agent_memory.features.memories.store import MemoryStore
from agent_memory.features.sessions.store import SessionStore
from agent_memory.features.transfer.archived_server.layout import OldKind, OldPrefixes, open_old
from agent_memory.features.transfer.archived_server.migration import MigrationService, MoveOptions, OnProgress, Report
from agent_memory.features.transfer.archived_server.progress import MoveStore
from agent_memory.foundation.api.principals import scope_of_work
from agent_memory.foundation.core.errors import RedisUnavailable, StartupError
from agent_memory.foundation.core.logs import configure_logging
from agent_memory.foundation.core.settings import Settings, load_settings
from agent_memory.foundation.embedded.server import embedded_redis, has_data
from agent_memory.foundation.storage.connection import shown_url
from agent_memory.foundation.storage.keyspace import Keys
from agent_memory.interfaces.cli.run import check_redis_url
from agent_memory.interfaces.cli.store import is_begun, settings_with
from agent_memory.interfaces.cli.target import check_store_meant, say_store
from agent_memory.runtime import Runtime, open_runtime

_PLURALS = {OldKind.MEMORY: "memories", OldKind.SESSION: "sessions", OldKind.VIEW: "views", OldKind.PARTITION: "partitions"}
_SHOWN = 20


@dataclass(frozen=True, slots=True)
class MigrationOptions:
    """What the command line asked for."""

    source: str | None
    target: str | None
    tenant: str
    prefixes: OldPrefixes
    options: MoveOptions
    form: Literal["text", "json"]


def migrate(data_dir: str | None, options: MigrationOptions) -> None:
    """Moves, or says what would be moved. Raises StartupError in one line."""
    check_store_meant("migrate", "--to or --data-dir", bool(options.target or data_dir))
    settings = settings_with(options.target, data_dir)
    # The report is what is asked for here: what a start has to say goes without the chatter.
    configure_logging(settings.server.model_copy(update={"log_level": "WARNING"}))
    check_redis_url(settings)
    source = options.source or _own_url(load_settings())
    if urlsplit(source).scheme not in ("redis", "rediss", "unix"):
        raise StartupError(
            "--from: must look like redis://[user:password@]host:6379/0 (or rediss://, unix://); of a cluster, move each node"
        )
    try:
        with _progress(visible=options.form == "text" and sys.stderr.isatty()) as on_progress:
            report = asyncio.run(_move(settings, source, options, on_progress))
    except RedisUnavailable as error:
        raise StartupError(f"{error.message}: run it again, it goes on where it stood") from error
    if options.form == "json":
        typer.echo(report.model_dump_json())
    else:
        _print(report)


def _own_url(settings: Settings) -> str:
    if settings.redis.url is None:
        raise StartupError("say where the old server's data is: --from redis://host:6379/0, or REDIS_URL")
    return settings.redis.url.get_secret_value()


async def _move(settings: Settings, source: str, options: MigrationOptions, on_progress: OnProgress) -> Report:
    ours = Keys(settings.redis.key_prefix).root.removesuffix("0}:")
    parts = urlsplit(source)
    shown = shown_url(source) + (parts.path if parts.hostname else "")
    async with (
        open_old(source, shown, options.prefixes, ours=ours, command_timeout=max(settings.redis.command_timeout_seconds, 30.0)) as old,
        _open_target(settings, begin=not options.options.dry_run) as home,
    ):
        runtime = home.of(options.tenant)
        service = MigrationService(
            settings,
            old,
            MoveStore(runtime.client, runtime.keys, runtime[MemoryStore]),
            runtime[MemoryStore],
            runtime[MemoryCommits],
            runtime[SessionStore],
            runtime.services.archived,
            runtime.embedder,
            runtime.counter,
            extracts=runtime.extracts,
        )
        return await service.run(scope_of_work(options.tenant), options.options, on_progress)


@asynccontextmanager
async def _open_target(settings: Settings, *, begin: bool) -> AsyncGenerator[Runtime]:
    """The store that gets the data, which no server may be using when it is an embedded one. Without `begin` none is made.

    A look at what would be moved into a store that is not there is a look at an empty one.
    """
    async with AsyncExitStack() as stack:
        folder: Path | None = None
        if settings.redis.url is not None:
            url = settings.redis.url.get_secret_value()
            begun, shown = begin or await is_begun(settings, url), shown_url(url)
        else:
            meant = settings.redis.data_dir.expanduser().absolute()
            begun, shown = begin or has_data(meant), f"in {meant} (embedded Redis)"
            folder = meant if begun else Path(stack.enter_context(TemporaryDirectory(prefix="am-")))
            url = (await stack.enter_async_context(embedded_redis(folder, port=settings.redis.embedded_port))).url
        runtime = await stack.enter_async_context(open_runtime(settings, url, data_dir=folder, begin=begun))
        say_store(f"{shown}, keys {runtime.keys.prefix}:" + ("" if begun else " (not made yet)"))
        yield runtime


@contextmanager
def _progress(*, visible: bool) -> Generator[OnProgress]:
    columns = (TextColumn("{task.description:10}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), disable=not visible) as bars:
        tasks: dict[OldKind, TaskID] = {}

        def advance(kind: OldKind, seen: int, total: int) -> None:
            if kind not in tasks:
                tasks[kind] = bars.add_task(_PLURALS[kind], total=total)
            bars.update(tasks[kind], completed=seen, total=total)

        yield advance


def _print(report: Report) -> None:
    would = "would be " if report.dry_run else ""
    for kind, plural in _PLURALS.items():
        counts = report.counts[kind.value]
        parts = [f"{counts.written} {would}written", f"{counts.there} already there"]
        parts[1:1] = [f"{counts.merged} {would}merged into what says the same"] if counts.merged else []
        parts += [f"{counts.deleted_here} deleted here since"] if counts.deleted_here else []
        parts += [f"{counts.other} left (other content stands here)"] if counts.other else []
        parts += [f"{counts.skipped} skipped"] if counts.skipped else []
        parts += [f"{counts.changed} with changes"] if counts.changed else []
        typer.echo(f"{plural + ':':12}{counts.read} read: " + ", ".join(parts))
    typer.echo(f"vectors:    {report.vectors_reused} {would}kept, {report.vectors_to_embed} {would}made by a worker")
    if report.tokens:
        typer.echo(
            f"tokens:     {report.tokens} cannot be moved: only their bcrypt hashes are stored. "
            "Make new ones with `agent-memory token add` and hand them out."
        )
    for title, remarks in (("Skipped or left as it is here", report.skipped), ("Moved with changes", report.changed)):
        if remarks:
            typer.echo(f"\n{title}:")
            for remark in remarks[:_SHOWN]:
                typer.echo(f"  {remark.kind} {remark.id!r}: {remark.reason}")
            if len(remarks) > _SHOWN:
                typer.echo(f"  and {len(remarks) - _SHOWN} more: --format json names up to 1000")
    if report.dry_run:
        typer.echo("\nThis was a dry run: nothing was written. Run it again with --yes to move.")
    elif report.resumed:
        typer.echo("\nAn unfinished move was taken up where it stood; the counts are those of the whole move.")
