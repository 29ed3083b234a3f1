"""`agent-memory search`, `delete`, `call` and `schedule-task`: single requests to a running server, or to the configured Redis."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import typer

from agent_memory.foundation.core.errors import NotFound
from agent_memory.interfaces.cli.api_client import Api, MemoryTarget, reach
from agent_memory.interfaces.cli.confirmation import ask

OK, USAGE, NOT_FOUND = 0, 2, 3
_PAGE = 100


def answer_of(target: MemoryTarget, method: str, path: str, body: Any = None) -> Any:
    """The JSON of one request. Raises NotFound, and StartupError for every other refusal."""

    async def run() -> Any:
        async with reach(target) as api:
            return await api.call(method, path, body=body)

    return asyncio.run(run())


def search(target: MemoryTarget, body: dict[str, Any], form: str) -> None:
    """Prints what a search finds."""
    answer = answer_of(target, "POST", "/v1/long-term-memory/search", body)
    if form == "json":
        typer.echo(json.dumps(answer, ensure_ascii=False))
        return
    for hit in answer["memories"]:
        score = "" if hit["score"] is None else f"  {hit['score']:.3f}"
        about = " ".join(f"{name}={hit[name]}" for name in ("namespace", "user_id", "session_id") if hit[name])
        typer.echo(f"{hit['id']}{score}  {hit['created_at'][:10]} {hit['memory_type']}  {about}".rstrip())
        typer.echo("    " + " ".join(hit["text"].split()))
    shown = len(answer["memories"])
    more = "" if answer["next_offset"] is None else f"; more with --offset {answer['next_offset']}"
    typer.echo(f"{shown} of {answer['total']}{more}" if shown else "nothing found")


@dataclass(frozen=True, slots=True)
class DeletionSelection:
    """Which memories are to be deleted: those named, and with `blank` those without a text; all within a namespace and user, if given."""

    ids: Sequence[str]
    blank: bool
    namespace: str | None
    user_id: str | None


def delete_memories(target: MemoryTarget, selection: DeletionSelection, *, dry_run: bool, force: bool) -> int:
    """Deletes memories after asking; returns the exit code: 3 when one that was named is not there."""
    return asyncio.run(_delete_memories(target, selection, dry_run=dry_run, force=force))


async def _delete_memories(target: MemoryTarget, selection: DeletionSelection, *, dry_run: bool, force: bool) -> int:
    async with reach(target) as api:
        texts: dict[str, str] = {}
        missing: list[str] = []
        for name in dict.fromkeys(selection.ids):
            memory = await _memory(api, name, selection)
            if memory is None:
                missing.append(name)
            else:
                texts[name] = memory["text"]
        if selection.blank:
            async for memory in _all(api, selection):
                if not memory["text"].strip():
                    texts[memory["id"]] = ""
        for name, text in texts.items():
            typer.echo(f"{name}  {' '.join(text.split())[:80]}")
        for name in missing:
            typer.echo(f"there is no memory {name}", err=True)
        if texts and dry_run:
            typer.echo(f"{len(texts)} would be deleted")
        elif texts:
            ask(f"Delete {len(texts)} memories for good?", force=force)
            deleted = 0
            names = list(texts)
            for start in range(0, len(names), _PAGE):
                answer = await api.call("DELETE", "/v1/long-term-memory", {"memory_ids": names[start : start + _PAGE]})
                deleted += int("".join(c for c in answer["status"] if c.isdigit()) or 0)
            typer.echo(f"deleted {deleted} memories")
        elif not missing:
            typer.echo("nothing to delete")
        return NOT_FOUND if missing else OK


async def _memory(api: Api, name: str, selection: DeletionSelection) -> dict[str, Any] | None:
    try:
        memory = await api.call("GET", f"/v1/long-term-memory/{quote(name, safe='')}")
    except NotFound:
        return None
    mine = selection.namespace in (None, memory["namespace"]) and selection.user_id in (None, memory["user_id"])
    return memory if mine else None


async def _all(api: Api, selection: DeletionSelection) -> AsyncGenerator[dict[str, Any]]:
    body: dict[str, Any] = {"text": "", "limit": _PAGE, "offset": 0, "recency_boost": False}
    for field, value in (("namespace", selection.namespace), ("user_id", selection.user_id)):
        if value is not None:
            body[field] = {"eq": value}
    while body["offset"] is not None:
        page = await api.call("POST", "/v1/long-term-memory/search", body=body)
        for memory in page["memories"]:
            yield memory
        body["offset"] = page["next_offset"]


def delete_session(target: MemoryTarget, session_id: str, namespace: str | None, user_id: str | None, *, force: bool) -> int:
    """Deletes a session after asking; returns the exit code: 3 when it is not there. What it made long-term memory of stays."""
    return asyncio.run(_delete_session(target, session_id, {"namespace": namespace, "user_id": user_id}, force=force))


async def _delete_session(target: MemoryTarget, session_id: str, scope: dict[str, str | None], *, force: bool) -> int:
    path = f"/v1/working-memory/{quote(session_id, safe='')}"
    async with reach(target) as api:
        try:
            session = await api.call("GET", path, scope)
        except NotFound as error:
            typer.echo(error.message, err=True)
            return NOT_FOUND
        owner = {"namespace": session["namespace"], "user_id": session["user_id"]}
        about = " ".join(f"{name}={value}" for name, value in owner.items() if value)
        ask(f"Delete session {session_id} ({about + ', ' if about else ''}{len(session['messages'])} messages)?", force=force)
        await api.call("DELETE", path, owner)
        typer.echo(f"deleted session {session_id}")
        return OK


def schedule(target: MemoryTarget, task: str, arguments: Sequence[str]) -> int:
    """Orders what one of the archived server's tasks did, by its name; returns the exit code: 2 for a task that has nothing to order."""
    options = dict(_argument(argument) for argument in arguments)
    name = task.replace(":", ".").rpartition(".")[2].removeprefix("periodic_")
    if name not in _TASKS:
        names = ", ".join(_TASKS)
        typer.echo(f"there is no task {name} to order: workers do by themselves what is due; what can be ordered: {names}", err=True)
        return USAGE
    unknown = sorted(options.keys() - _TASKS[name])
    if unknown:
        typer.echo(f"{name} has no argument {unknown[0]}: it has {', '.join(sorted(_TASKS[name]))}", err=True)
        return USAGE

    async def run() -> Any:
        async with reach(target) as api:
            return await _order(api, name, options)

    typer.echo(json.dumps(asyncio.run(run()), ensure_ascii=False))
    return OK


_TASKS: dict[str, set[str]] = {
    "compact_long_term_memories": {"namespace", "user_id"},
    "forget_long_term_memories": {"policy", "namespace", "user_id", "session_id", "limit", "dry_run", "pinned_ids"},
    "refresh_summary_view": {"view_id", "task_id"},
    "refresh_summary_views": set(),
}


def _argument(text: str) -> tuple[str, Any]:
    name, joint, value = text.partition("=")
    if not joint or not name:
        raise typer.BadParameter(f"--args {text}: write name=value")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


async def _order(api: Api, name: str, arguments: dict[str, Any]) -> Any:
    if name == "compact_long_term_memories":
        return await api.call("POST", "/v1/long-term-memory/compact", arguments)
    if name == "forget_long_term_memories":
        body = {key: arguments.pop(key) for key in ("policy", "pinned_ids") if key in arguments}
        return await api.call("POST", "/v1/long-term-memory/forget", arguments, body={"policy": {}, **body})
    if name == "refresh_summary_view":
        if "view_id" not in arguments:
            raise typer.BadParameter("refresh_summary_view needs --args view_id=…")
        return await _run_view(api, arguments["view_id"], arguments.get("task_id"))
    return [await _run_view(api, view["id"], None) for view in await api.call("GET", "/v1/summary-views")]


async def _run_view(api: Api, view_id: str, task_id: str | None) -> Any:
    return await api.call("POST", f"/v1/summary-views/{quote(view_id, safe='')}/run", body={} if task_id is None else {"task_id": task_id})
