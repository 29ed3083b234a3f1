"""The `agent-memory reembed` command. Every command imports this module, so limit its imports."""

from __future__ import annotations

import asyncio
from difflib import get_close_matches
from typing import Annotated, Any, Literal

import typer

_ACTIONS = ("pause", "resume", "confirm", "rollback", "abort")
_LOOK_SECONDS = 1.0


async def reembed(
    api: Any,
    model_or_action: Annotated[str, typer.Argument(metavar="MODEL", help=f"model, or {', '.join(_ACTIONS)}")] = "",
    provider: Annotated[Literal["local", "openai"] | None, typer.Option(help="provider (default: the current one)")] = None,
    rate: Annotated[float, typer.Option(help="maximum memories per second; 0: no limit")] = 0,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="only estimate the cost")] = False,
    watch: Annotated[bool, typer.Option("--watch", help="show progress until the workers finish")] = False,
) -> Any:
    """Change the embedding model in the background. If MODEL is omitted, show the progress."""
    if near := get_close_matches(model_or_action, () if model_or_action in _ACTIONS else _ACTIONS, n=1, cutoff=0.7):
        raise typer.BadParameter(f"there is no action {model_or_action}: write {near[0]}, or the name or directory of a model")
    if model_or_action in ("", *_ACTIONS):
        status = await api.call("POST" if model_or_action else "GET", f"/v1/reembed/{model_or_action}".rstrip("/"))
    else:
        body = {"model": model_or_action, "rate": rate, "dry_run": dry_run} | ({"provider": provider} if provider else {})
        status = await api.call("POST", "/v1/reembed", body=body)
    if watch and not dry_run:
        with api.progress("embedding", 1) as update:
            while status["phase"] in ("filling", "ending"):
                update(
                    description=f"{status['phase']}: {status['done']} of {status['texts']}", completed=status["done"], total=status["texts"]
                )
                await asyncio.sleep(_LOOK_SECONDS)
                status = await api.call("GET", "/v1/reembed")
    return status
