"""Define what commands share: options, the target, the confirmation prompt before a deletion, and output."""

from __future__ import annotations

import os
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import urlsplit, urlunsplit

import typer

if TYPE_CHECKING:
    from rich.status import Status


FAILED, USAGE, NOT_FOUND = 1, 2, 3
_WRAPPING: dict[str, Any] = {"width": 100, "subsequent_indent": "    ", "break_long_words": False, "break_on_hyphens": False}

Namespace = Annotated[str | None, typer.Option("--namespace", "-n", metavar="NAME", help="only this namespace")]
User = Annotated[str | None, typer.Option("--user", "--user-id", "-u", metavar="ID", help="only this user")]
Session = Annotated[str | None, typer.Option("--session-id", "-s", metavar="ID", help="only this session")]
Agent = Annotated[bool, typer.Option("--agent", help="of the agent of that name")]
Owner = Annotated[str, typer.Argument(metavar="USER", help="user who owns the data; with --agent, an agent's name")]
Force = Annotated[bool, typer.Option("--force", "-f", help="do not ask first")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="only show what would be deleted")]
Url = Annotated[str | None, typer.Option("--url", metavar="URL", help="a server's address (AGENT_MEMORY_URL, else opens the store)")]
RedisUrl = Annotated[str | None, typer.Option("--redis-url", metavar="URL", help="the Redis of the store [env: REDIS_URL]")]
DataDir = Annotated[Path | None, typer.Option("--data-dir", metavar="DIR", help="the store of an embedded Redis [env: DATA_DIR]")]


@dataclass(frozen=True, slots=True)
class Target:
    """A command's target: the server at `url`, else the store in `data_dir`, else the store in the settings."""

    url: str | None = None
    api_key: str | None = None
    data_dir: Path | None = None


def named_server() -> str | None:
    """Return the server URL set in the environment, or None."""
    return os.environ.get("AGENT_MEMORY_URL", "").strip() or None


def local_server() -> str:
    """Return the URL at which a server on this machine listens according to the settings."""
    from agent_memory.foundation.core.settings import load_settings

    return f"http://127.0.0.1:{load_settings().server.port}"


def shown_server(url: str) -> str:
    """Return a server's URL without credentials or query string."""
    try:
        parts = urlsplit(url)
        return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path.rstrip("/"), "", ""))
    except ValueError:
        return "the URL that was given"


def announce(kind: Literal["server", "store"], name: str) -> None:
    """Print to stderr which server answered or which store is open. stdout is reserved for the answer."""
    print(f"agent-memory: {kind} {shown_server(name) if kind == 'server' else name}", file=sys.stderr, flush=True)


def say(*lines: str, err: bool = False) -> None:
    """Print lines for people, wrapped at 100 columns without breaking long words."""
    for line in lines:
        typer.echo(textwrap.fill(line, **_WRAPPING), err=err)


def working(what: str) -> Status:
    """Return a context manager that shows a status on the terminal until it exits. Its `update` method shows progress."""
    from rich.console import Console

    return Console(stderr=True, quiet=not sys.stderr.isatty()).status(what)


def ask(question: str, *, force: bool, option: str = "--force") -> None:
    """Ask the user to confirm. Raises typer.Exit if the user declines.

    The exit code is 2 if there is no terminal. The message then recommends `option`, which skips the question.
    """
    if force:
        return
    if not sys.stdin.isatty():
        typer.echo(f"no terminal to ask for confirmation: pass {option} to delete without a question", err=True)
        raise typer.Exit(USAGE)
    if not typer.confirm(question, err=True):
        typer.echo("nothing was deleted", err=True)
        raise typer.Exit(FAILED)
