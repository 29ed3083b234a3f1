"""The command that shows a user's timeline."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from agent_memory.cli.feature_commands import CallApi


def register(root: typer.Typer, call_api: CallApi) -> None:
    """Adds the command."""

    def timeline(
        user_id: Annotated[str, typer.Argument(help="The user.")],
        namespace: Annotated[str | None, typer.Option(help="The namespace; what is in none when not given.")] = None,
        first: Annotated[str | None, typer.Option("--from", help="The first day, such as 2024-03-01.")] = None,
        last: Annotated[str | None, typer.Option("--to", help="The last day, included.")] = None,
        topic: Annotated[str | None, typer.Option(help="Only what is about this topic.")] = None,
        entity: Annotated[str | None, typer.Option(help="Only what names this person, place or thing.")] = None,
        granularity: Annotated[str | None, typer.Option(help="Group the events by day, week or month.")] = None,
        limit: Annotated[int, typer.Option(help="At most so many events.")] = 100,
        rebuild: Annotated[bool, typer.Option("--rebuild", help="Order that the timeline be made anew from the memories.")] = False,
        url: Annotated[str | None, typer.Option(help="The server; the configured store when not given.")] = None,
        api_key: Annotated[str | None, typer.Option(envvar="AGENT_MEMORY_API_KEY", help="The server's API key.")] = None,
    ) -> None:
        """Print what happened to a user and when, as JSON."""
        whose = _given({"user_id": user_id, "namespace": namespace})
        if rebuild:
            answer = call_api("POST", "/v1/timeline/rebuild", whose, url=url, api_key=api_key)
        else:
            asked = _given({"from": first, "to": last, "topic": topic, "entity": entity, "granularity": granularity, "limit": limit})
            answer = call_api("GET", "/v1/timeline", {**whose, **asked}, url=url, api_key=api_key)
        typer.echo(json.dumps(answer, ensure_ascii=False, indent=2))

    root.command()(timeline)


def _given(values: dict[str, str | int | None]) -> dict[str, str | int]:
    return {name: value for name, value in values.items() if value is not None}
