"""The commands that show and change memory blocks."""

from __future__ import annotations

import json
from typing import Annotated, Any
from urllib.parse import quote

import typer

from agent_memory.cli.feature_commands import CallApi

_Label = Annotated[str, typer.Argument(help="The block, such as human.")]
_Agent = Annotated[str | None, typer.Option(help="The agent that owns it.")]
_User = Annotated[str | None, typer.Option("--user", "--user-id", help="The user that owns it.")]
_Namespace = Annotated[str | None, typer.Option(help="The namespace that owns it.")]
_Url = Annotated[str | None, typer.Option(help="The server; the configured store when not given.")]
_ApiKey = Annotated[str | None, typer.Option(envvar="AGENT_MEMORY_API_KEY", help="The server's API key.")]


def register(root: typer.Typer, call_api: CallApi) -> None:
    """Adds the group of commands. The owner of a block is exactly what is named."""
    blocks = typer.Typer(no_args_is_help=True, help="Show and change memory blocks.")
    root.add_typer(blocks, name="blocks")

    def call(method: str, label: str | None, owner: dict[str, str | None], to: tuple[str | None, str | None], body: Any = None) -> None:
        path = "/v1/blocks" if label is None else f"/v1/blocks/{quote(label, safe='')}"
        query = {name: value for name, value in owner.items() if value is not None}
        answer = call_api(method, path, query, body, url=to[0], api_key=to[1])
        typer.echo(json.dumps(answer, ensure_ascii=False, indent=2))

    @blocks.command("list")
    def list_blocks(
        agent_id: _Agent = None, user_id: _User = None, namespace: _Namespace = None, url: _Url = None, api_key: _ApiKey = None
    ) -> None:
        """Print the blocks of an owner as JSON."""
        call("GET", None, _owner(agent_id, user_id, namespace), (url, api_key))

    @blocks.command()
    def get(
        label: _Label,
        agent_id: _Agent = None,
        user_id: _User = None,
        namespace: _Namespace = None,
        url: _Url = None,
        api_key: _ApiKey = None,
    ) -> None:
        """Print a block as JSON."""
        call("GET", label, _owner(agent_id, user_id, namespace), (url, api_key))

    @blocks.command("set")
    def set_value(
        label: _Label,
        value: Annotated[str, typer.Argument(help="Its whole text.")],
        agent_id: _Agent = None,
        user_id: _User = None,
        namespace: _Namespace = None,
        url: _Url = None,
        api_key: _ApiKey = None,
    ) -> None:
        """Make a block, or replace its text."""
        call("PUT", label, _owner(agent_id, user_id, namespace), (url, api_key), {"value": value})

    @blocks.command()
    def append(
        label: _Label,
        content: Annotated[str, typer.Argument(help="The line to add.")],
        agent_id: _Agent = None,
        user_id: _User = None,
        namespace: _Namespace = None,
        url: _Url = None,
        api_key: _ApiKey = None,
    ) -> None:
        """Add a line to a block."""
        call("PATCH", label, _owner(agent_id, user_id, namespace), (url, api_key), {"operation": "append", "content": content})

    @blocks.command()
    def delete(
        label: _Label,
        agent_id: _Agent = None,
        user_id: _User = None,
        namespace: _Namespace = None,
        url: _Url = None,
        api_key: _ApiKey = None,
    ) -> None:
        """Delete a block with its history."""
        call("DELETE", label, _owner(agent_id, user_id, namespace), (url, api_key))


def _owner(agent_id: str | None, user_id: str | None, namespace: str | None) -> dict[str, str | None]:
    return {"agent_id": agent_id, "user_id": user_id, "namespace": namespace}
