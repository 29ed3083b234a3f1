"""Define the command `agent-memory reembed`. All commands import this module, so it imports little."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import typer


async def reembed(
    api: Any,
    what: Annotated[str, typer.Argument(metavar="MODEL", help="model, or pause, resume, confirm, rollback, abort")] = "",
    provider: Annotated[Literal["local", "openai"] | None, typer.Option(help="provider (the current one)")] = None,
    rate: Annotated[float, typer.Option(help="most memories per second; 0: all")] = 0,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="only estimate the cost")] = False,
) -> Any:
    """Change the embedding model in the background, without interrupting searches. Without MODEL, show the progress."""
    if what in ("", "pause", "resume", "confirm", "rollback", "abort"):
        return await api.call("POST" if what else "GET", f"/v1/reembed/{what}".rstrip("/"))
    given = {"model": what, "rate": rate, "dry_run": dry_run} | ({"provider": provider} if provider else {})
    return await api.call("POST", "/v1/reembed", body=given)
