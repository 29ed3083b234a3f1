"""Define the options that commands share."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

Namespace = Annotated[str | None, typer.Option("--namespace", "-n", metavar="NAME", help="only this namespace")]
User = Annotated[str | None, typer.Option("--user", "--user-id", "-u", metavar="ID", help="only this user")]
Session = Annotated[str | None, typer.Option("--session-id", "-s", metavar="ID", help="only this session")]
Agent = Annotated[bool, typer.Option("--agent", help="USER is an agent's name")]
Owner = Annotated[str, typer.Argument(metavar="USER", help="user who owns the data; with --agent, an agent's name")]
Force = Annotated[bool, typer.Option("--force", "-f", help="do not ask for confirmation")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="only show what would be deleted")]
Url = Annotated[str | None, typer.Option("--url", metavar="URL", help="server address (default: AGENT_MEMORY_URL, else opens the store)")]
RedisUrl = Annotated[str | None, typer.Option("--redis-url", metavar="URL", help="the store's Redis [env: REDIS_URL]")]
DataDir = Annotated[Path | None, typer.Option("--data-dir", metavar="DIR", help="data directory of an embedded Redis [env: DATA_DIR]")]


def named_server() -> str | None:
    """Return the server URL set in the environment, or None."""
    return os.environ.get("AGENT_MEMORY_URL", "").strip() or None
