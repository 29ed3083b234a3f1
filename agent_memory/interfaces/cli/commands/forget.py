"""`agent-memory forget`: forgets what is named, after showing it, and brings it back."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from urllib.parse import quote

import typer

from agent_memory.interfaces.cli.api_client import MemoryTarget, reach
from agent_memory.interfaces.cli.confirmation import ask

OK, AMBIGUOUS, NOT_FOUND = 0, 2, 3
_PATH = "/v1/memory/forget"


def forget(target: MemoryTarget, body: dict[str, Any], *, dry_run: bool, yes: bool, form: str) -> int:
    """Shows what would go, asks, and lets it go; returns the exit code: 2 when several things could be meant, 3 when nothing is."""
    return asyncio.run(_forget(target, body, dry_run=dry_run, yes=yes, form=form))


async def _forget(target: MemoryTarget, body: dict[str, Any], *, dry_run: bool, yes: bool, form: str) -> int:
    async with reach(target) as api:
        answer = await api.call("POST", _PATH, body=body | {"dry_run": True})
        clear = [match for match in answer["matches"] if match["clear"]]
        if form == "json" and (dry_run or answer["ambiguous"] or not clear):
            typer.echo(json.dumps(answer, ensure_ascii=False))
        elif form != "json":
            _show(answer)
        if answer["ambiguous"]:
            return AMBIGUOUS
        if not clear:
            return NOT_FOUND
        if dry_run:
            return OK
        ask("Forget this?", force=yes, option="--yes")
        done = await api.call("POST", _PATH, body=body)
        if form == "json":
            typer.echo(json.dumps(done, ensure_ascii=False))
            return OK
        counts = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in sorted(done["forgotten"].items()))
        typer.echo(f"forgotten: {counts}")
        if done["undo_until"] is not None:
            typer.echo(f"until {done['undo_until'][:16]}Z it comes back by: agent-memory forget --undo {done['receipt_id']}")
        return OK


def _show(answer: dict[str, Any]) -> None:
    for match in answer["matches"]:
        if match["clear"] or answer["ambiguous"]:
            left = "" if match["left"] is None else f"; this stays: {match['left']}"
            typer.echo(f"{match['kind'].replace('_', ' ')}  {match['id']}  {' '.join(match['text'].split())[:100]}")
            typer.echo(f"    {match['why']}{left}")
    if answer["ambiguous"]:
        typer.echo("several things could be meant: say which, with --id", err=True)
    elif not any(match["clear"] for match in answer["matches"]):
        typer.echo("nothing of that is remembered", err=True)


def undo(target: MemoryTarget, receipt_id: str) -> None:
    """Brings back what went under a receipt."""

    async def run() -> Any:
        async with reach(target) as api:
            return await api.call("POST", f"{_PATH}/{quote(receipt_id, safe='')}/undo")

    restored = asyncio.run(run())["restored"]
    newer = f"; {restored['kept_newer']} stay away, as something newer stands in their place" if restored["kept_newer"] else ""
    typer.echo(f"back: {restored['memories']} memories, {restored['messages']} messages of sessions{newer}")
