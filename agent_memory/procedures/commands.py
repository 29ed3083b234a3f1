"""`agent-memory procedures`: what worked in a situation, from a running server or the configured store."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer


def register(root: typer.Typer, call_api: Callable[..., Any]) -> None:
    """Adds the command; `call_api` is that of `cli/feature_commands.py`."""

    def procedures(
        situation: Annotated[str, typer.Argument(help="What is to be done, in plain words.")],
        user_id: Annotated[str | None, typer.Option("--user", "--user-id", help="Only procedures of this user.")] = None,
        agent_id: Annotated[str | None, typer.Option(help="Only procedures of this agent.")] = None,
        namespace: Annotated[str | None, typer.Option(help="Only procedures of this namespace.")] = None,
        limit: Annotated[int, typer.Option(help="At most so many.")] = 5,
        url: Annotated[str | None, typer.Option(help="A running server; the configured store if left out.")] = None,
        api_key: Annotated[str | None, typer.Option(envvar="AGENT_MEMORY_API_KEY", help="The key for that server.")] = None,
    ) -> None:
        """Print the procedures that fit a situation."""
        names = {"user_id": user_id, "agent_id": agent_id, "namespace": namespace}
        body = {"situation": situation, "limit": limit} | {name: value for name, value in names.items() if value is not None}
        answer = call_api("POST", "/v1/procedures/search", None, body, url=url, api_key=api_key)
        for procedure in answer["procedures"]:
            typer.echo(f"{procedure['id']}  {procedure['rank_score']:.3f}  {procedure['when_to_use']}")
            for number, step in enumerate(procedure["steps"], start=1):
                typer.echo(f"    {number}. {step}")
        if not answer["procedures"]:
            typer.echo("nothing found")

    root.command()(procedures)
