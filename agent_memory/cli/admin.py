"""The commands that look after data: what they are called and which options they have. What they do stands in modules of their own.

Nothing heavy is imported at the top of this file, as in `app.py`.
"""

from __future__ import annotations

from typing import Annotated, Literal

import typer

Format = Annotated[Literal["text", "json"], typer.Option("--format", help="json: nothing else on stdout")]


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command()(migrate)


def migrate(
    source: Annotated[str | None, typer.Option("--from", metavar="URL", help="the old server's Redis (REDIS_URL)")] = None,
    target: Annotated[str | None, typer.Option("--to", metavar="URL", help="our Redis (REDIS_URL, else the embedded one)")] = None,
    data_dir: Annotated[str | None, typer.Option(metavar="DIR", help="where the embedded Redis keeps its data [env: DATA_DIR]")] = None,
    tenant: Annotated[str, typer.Option(metavar="NAME", help="the tenant that gets the data")] = "default",
    memory_prefix: Annotated[
        str, typer.Option(envvar="REDISVL_INDEX_PREFIX", metavar="PREFIX", help="begin of the old memories' keys")
    ] = "memory_idx",
    session_prefix: Annotated[
        str, typer.Option(envvar="WORKING_MEMORY_INDEX_PREFIX", metavar="PREFIX", help="begin of the old sessions' keys")
    ] = "working_memory:",
    vectors: Annotated[
        Literal["auto", "reuse", "embed"],
        typer.Option(help="auto: kept where a comparison shows the same model; reuse: always, if the length fits; embed: made anew"),
    ] = "auto",
    extract: Annotated[
        bool, typer.Option("--extract/--no-extract", help="whether messages that the old server took no facts from become memories here")
    ] = True,
    yes: Annotated[bool, typer.Option("--yes/--dry-run", "-y", help="move; without it, only say what would happen")] = False,
    restart: Annotated[bool, typer.Option("--restart", help="begin again instead of going on with an unfinished move")] = False,
    form: Format = "text",
) -> None:
    """Move in from the archived server: reads its Redis, never changes it, and can be run as often as you like."""
    from agent_memory.cli import migrate as moving

    options = moving.MoveOptions(dry_run=not yes, vectors=vectors, extract=extract, restart=restart)
    prefixes = moving.OldPrefixes(memory_prefix, session_prefix)
    moving.migrate({"DATA_DIR": data_dir} if data_dir else {}, moving.Wanted(source, target, tenant, prefixes, options, form))
