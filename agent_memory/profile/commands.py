"""The command that shows a user's profile."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from agent_memory.cli.feature_commands import CallApi


def register(root: typer.Typer, call_api: CallApi) -> None:
    """Adds the command."""

    def profile(
        user_id: Annotated[str, typer.Argument(help="The user.")],
        namespace: Annotated[str | None, typer.Option(help="The namespace; what is in none when not given.")] = None,
        query: Annotated[str | None, typer.Option(help="Also search the user's memories for this.")] = None,
        limit: Annotated[int, typer.Option(help="At most so many entries of each kind.")] = 20,
        rebuild: Annotated[bool, typer.Option("--rebuild", help="Order that the profile be made anew from the memories.")] = False,
        url: Annotated[str | None, typer.Option(help="The server; the configured store when not given.")] = None,
        api_key: Annotated[str | None, typer.Option(envvar="AGENT_MEMORY_API_KEY", help="The server's API key.")] = None,
    ) -> None:
        """Print a user's profile as JSON."""
        whose = {"user_id": user_id, "namespace": namespace}
        whose = {name: value for name, value in whose.items() if value is not None}
        if rebuild:
            answer = call_api("POST", "/v1/profile/rebuild", whose, url=url, api_key=api_key)
        else:
            more = {"q": query} if query else {}
            answer = call_api("GET", "/v1/profile", {**whose, **more, "limit": limit}, url=url, api_key=api_key)
        typer.echo(json.dumps(answer, ensure_ascii=False, indent=2))

    root.command()(profile)
