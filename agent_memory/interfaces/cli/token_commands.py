"""The commands of `agent-memory token`. Nothing heavy is imported at the top of this file, as in `app.py`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from agent_memory.interfaces.cli.commands import tokens

Format = Annotated[Literal["text", "json"], typer.Option("--format", help="json: nothing else on stdout")]
Url = Annotated[
    str | None, typer.Option("--url", metavar="URL", help="a running server (AGENT_MEMORY_URL; else the store of the settings is opened)")
]
ApiKey = Annotated[
    str | None, typer.Option("--api-key", metavar="KEY", help="for that server (AUTH_ADMIN_TOKEN, else AGENT_MEMORY_API_KEY)")
]
Folder = Annotated[Path | None, typer.Option("--data-dir", metavar="DIR", help="of the embedded Redis, whatever AGENT_MEMORY_URL says")]
Name = Annotated[str, typer.Argument(metavar="ID_OR_HASH", help="the key's id, or its hash, or the begin of that")]

app = typer.Typer(help="API keys: make, list, show, rotate, revoke.", no_args_is_help=True, rich_markup_mode=None)


def _place(url: str | None, api_key: str | None, data_dir: Path | None) -> tokens.TokenTarget:
    from agent_memory.interfaces.cli.commands import tokens
    from agent_memory.interfaces.cli.target import named_server

    if url and data_dir:
        raise typer.BadParameter("--url names a server, --data-dir a store: give one of them")
    return tokens.TokenTarget(url or (None if data_dir else named_server()), data_dir, api_key)


def register(root: typer.Typer) -> None:
    """Adds the group."""
    root.add_typer(app, name="token")


@app.command()
def add(
    description: Annotated[str, typer.Option("--description", "-d", help="what it is for")],
    expires_days: Annotated[int | None, typer.Option("--expires-days", "-e", min=1, help="days until it ends (never)")] = None,
    token: Annotated[str | None, typer.Option("--token", help="a secret of your own, of 16 characters or more (a new one)")] = None,
    role: Annotated[Literal["read", "write", "admin"], typer.Option(help="what it may do")] = "write",
    tenant: Annotated[str | None, typer.Option(help="whose data it opens (default)")] = None,
    namespace: Annotated[list[str] | None, typer.Option(help="only this namespace; may be repeated")] = None,
    user: Annotated[list[str] | None, typer.Option("--user", "--user-id", help="only this user; may be repeated")] = None,
    agent: Annotated[list[str] | None, typer.Option(help="only this agent; may be repeated")] = None,
    url: Url = None,
    api_key: ApiKey = None,
    data_dir: Folder = None,
    form: Format = "text",
) -> None:
    """Make an API key; its secret is shown this once."""
    from agent_memory.interfaces.cli.commands import tokens

    request = {"description": description, "expires_days": expires_days, "token": token, "role": role, "tenant": tenant}
    request |= {"namespaces": namespace or None, "users": user or None, "agents": agent or None}
    tokens.add(_place(url, api_key, data_dir), request, form)


@app.command(name="list")
def listing(url: Url = None, api_key: ApiKey = None, data_dir: Folder = None, form: Format = "text") -> None:
    """List the API keys of all tenants, without their secrets."""
    from agent_memory.interfaces.cli.commands import tokens

    tokens.listing(_place(url, api_key, data_dir), form)


@app.command()
def show(name: Name, url: Url = None, api_key: ApiKey = None, data_dir: Folder = None, form: Format = "text") -> None:
    """Show an API key, without its secret."""
    from agent_memory.interfaces.cli.commands import tokens

    tokens.show(_place(url, api_key, data_dir), name, form)


@app.command()
def remove(
    name: Name,
    force: Annotated[bool, typer.Option("--force", "-f", help="do not ask")] = False,
    url: Url = None,
    api_key: ApiKey = None,
    data_dir: Folder = None,
) -> None:
    """Revoke an API key: when this returns, no process accepts it."""
    from agent_memory.interfaces.cli.commands import tokens

    tokens.remove(_place(url, api_key, data_dir), name, force=force)


@app.command()
def rotate(
    name: Name,
    grace_seconds: Annotated[float, typer.Option(min=0, help="seconds for which the former secret counts")] = 3600.0,
    url: Url = None,
    api_key: ApiKey = None,
    data_dir: Folder = None,
    form: Format = "text",
) -> None:
    """Give an API key another secret."""
    from agent_memory.interfaces.cli.commands import tokens

    tokens.rotate(_place(url, api_key, data_dir), name, grace_seconds, form)
