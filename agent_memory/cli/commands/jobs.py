"""`agent-memory jobs`: background work of a running server, above all what was given up, over its REST API."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import httpx
import typer

from agent_memory.cli.target import base_of, say_server, sentence, shown_server
from agent_memory.core.errors import NotFound, StartupError

_PAGE = 100


@dataclass(frozen=True, slots=True)
class Server:
    """The running server that is asked: at `url`, else at the configured port of this machine; `api_key` as it may want one."""

    url: str | None = None
    api_key: str | None = None


def jobs(action: str, operation: str | None, server: Server, state: str | None, limit: int, form: str) -> None:
    """Does what `agent-memory jobs ACTION` says. Raises StartupError in one line, NotFound for an operation that is not there."""
    if action == "list":
        operations = _list(server, state, limit)
        say_server(base_of(server.url))
        _print(operations, form)
        return
    if operation is None:
        raise typer.BadParameter(f"jobs {action} needs an operation's id, as `agent-memory jobs list` shows it")
    path = f"/v1/operations/{quote(operation, safe='')}"
    if action == "show":
        said = json.dumps(call("GET", server, path), ensure_ascii=False, indent=2)
    elif action == "replay":
        said = call("POST", server, f"{path}/replay")["state"]
    else:
        said = call("DELETE", server, path)["status"]
    say_server(base_of(server.url))
    typer.echo(said)


def _list(server: Server, state: str | None, limit: int) -> list[dict[str, Any]]:
    operations: list[dict[str, Any]] = []
    offset: int | None = 0
    while offset is not None and len(operations) < limit:
        query: dict[str, Any] = {"limit": min(_PAGE, limit - len(operations)), "offset": offset} | ({"state": state} if state else {})
        page = call("GET", server, "/v1/operations", query)
        operations += page["operations"]
        offset = page["next_offset"]
    return operations


def _print(operations: list[dict[str, Any]], form: str) -> None:
    if form == "json":
        typer.echo(json.dumps(operations, ensure_ascii=False))
        return
    for operation in operations:
        about = " ".join(f"{name}={operation[name]}" for name in ("namespace", "user_id", "session_id", "memory_id") if operation[name])
        typer.echo(
            f"{operation['id']}  {operation['state']}, {operation['attempts']} tries  {about}"
            + (f"\n    {operation['reason']}" if operation["reason"] else "")
        )
    if not operations:
        typer.echo("nothing")


def call(method: str, server: Server, path: str, query: dict[str, Any] | None = None, *, body: dict[str, Any] | None = None) -> Any:
    """The answer's JSON. Raises NotFound for a 404, and StartupError in one line when the server is away or refuses."""
    base = base_of(server.url)
    shown = shown_server(base)
    headers = {"X-API-Key": server.api_key} if server.api_key else {}
    try:
        answer = httpx.request(method, base + path, params=query, json=body, headers=headers, timeout=30, trust_env=False)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise StartupError(f"no server answers at {shown}: {error}") from error
    try:
        said = answer.json()
    except ValueError as error:
        raise StartupError(f"{shown} is not a memory server: status {answer.status_code}, no JSON") from error
    if answer.status_code == 404:
        raise NotFound(f"{shown}: {sentence(said)}")
    if answer.status_code != 200:
        hint = " (--api-key, or AGENT_MEMORY_API_KEY)" if answer.status_code == 401 else ""
        raise StartupError(f"{shown} refuses: {sentence(said)}{hint}")
    return said
