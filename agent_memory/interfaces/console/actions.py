"""What a person changes. Each action is one or two REST operations; `ACTIONS` names them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from starlette.responses import Response

from agent_memory.foundation.core.errors import Conflict, NotFound
from agent_memory.interfaces.console.demo import DEMO_SESSION, DEMO_USER, demo_memories, demo_messages
from agent_memory.interfaces.console.frame import Fields, Page


@dataclass(frozen=True, slots=True)
class Action:
    """`run` returns what "undo" needs, as `<action>:<id>`; None where nothing can be undone."""

    run: Callable[[Page, Fields], Awaitable[str | None]]
    twins: tuple[str, ...]


ACTIONS: dict[str, Action] = {}


def _action(name: str, *twins: str) -> Callable[[Callable[[Page, Fields], Awaitable[str | None]]], None]:
    """Register an action. `twins`: the REST operations it calls, as `METHOD /path`."""

    def register(run: Callable[[Page, Fields], Awaitable[str | None]]) -> None:
        ACTIONS[name] = Action(run, twins)

    return register


async def do_action(page: Page) -> Response:
    """Run an action and lead back to its page, which says that it is done."""
    name = page.request.path_params["action"]
    if name not in ACTIONS:
        raise NotFound(page.words["no_page"])
    form = await page.form()
    undo = await ACTIONS[name].run(page, form)
    return page.redirect(_with_query(page.local(form.get("back")), done=name, undo=undo))


def _with_query(address: str, **changes: str | None) -> str:
    parts = urlsplit(address)
    query = {name: value for name, value in parse_qsl(parts.query) if name not in ("edit", *changes)}
    query |= {name: value for name, value in changes.items() if value is not None}
    return urlunsplit(parts._replace(query=urlencode(query), fragment=""))


def _memory_path(form: Fields) -> str:
    return f"/v1/long-term-memory/{form['id']}"


@_action("edit-memory", "PATCH /v1/long-term-memory/{memory_id}", "GET /v1/long-term-memory/{memory_id}/history")
async def _edit_memory(page: Page, form: Fields) -> str:
    await page.rest("PATCH", _memory_path(form), {"text": form["text"]})
    versions = (await page.rest("GET", f"{_memory_path(form)}/history"))["versions"]
    return f"undo-edit:{versions[0]['version']}:{form['id']}"


@_action("undo-edit", "GET /v1/long-term-memory/{memory_id}/history", "PATCH /v1/long-term-memory/{memory_id}")
async def _undo_edit(page: Page, form: Fields) -> None:
    version, _, memory_id = form["id"].partition(":")
    path = f"/v1/long-term-memory/{memory_id}"
    versions = (await page.rest("GET", f"{path}/history"))["versions"]
    if len(versions) < 2 or str(versions[0]["version"]) != version:
        raise Conflict(page.words["status_409"])
    await page.rest("PATCH", path, {"text": versions[1]["record"]["text"]})


@_action("pin", "PATCH /v1/long-term-memory/{memory_id}")
async def _pin(page: Page, form: Fields) -> None:
    await page.rest("PATCH", _memory_path(form), {"pinned": True})


@_action("unpin", "PATCH /v1/long-term-memory/{memory_id}")
async def _unpin(page: Page, form: Fields) -> None:
    await page.rest("PATCH", _memory_path(form), {"pinned": False})


@_action("forget", "POST /v1/memory/forget")
async def _forget(page: Page, form: Fields) -> str | None:
    receipt = (await page.rest("POST", "/v1/memory/forget", _forgetting(form)))["receipt_id"]
    return f"undo-forget:{receipt}" if receipt else None


@_action("undo-forget", "POST /v1/memory/forget/{receipt_id}/undo")
async def _undo_forget(page: Page, form: Fields) -> None:
    await page.rest("POST", f"/v1/memory/forget/{form['id']}/undo")


@_action("edit-block", "PUT /v1/blocks/{label}")
async def _edit_block(page: Page, form: Fields) -> None:
    names = {name: form.get(name) or None for name in ("user_id", "namespace", "agent_id")}
    headers = {"if-match": f'"{form["version"]}"'}
    await page.rest("PUT", f"/v1/blocks/{form['label']}", {"value": form["value"]}, headers=headers, **names)


@_action("load-demo", "POST /v1/working-memory/{session_id}/messages", "POST /v1/long-term-memory/", "PUT /v1/blocks/{label}")
async def _load_demo(page: Page, form: Fields) -> None:
    messages = demo_messages()
    body = {"user_id": DEMO_USER, "messages": messages}
    await page.rest("POST", f"/v1/working-memory/{DEMO_SESSION}/messages", body, wait="promoted")
    await asyncio.gather(
        page.rest("POST", "/v1/long-term-memory/", {"memories": demo_memories(messages), "deduplicate": False}, wait=5),
        page.rest(
            "PUT", "/v1/blocks/cooking", {"value": page.words["demo_block"], "description": page.words["demo_block_for"]}, user_id=DEMO_USER
        ),
    )


@_action("remove-demo", "DELETE /v1/users/{user_id}")
async def _remove_demo(page: Page, form: Fields) -> None:
    await page.rest("DELETE", f"/v1/users/{DEMO_USER}", wait=10)


def _forgetting(form: Fields, **more: Any) -> dict[str, Any]:
    return {"ids": [form["id"]], "user_id": form.get("user") or None, "namespace": form.get("namespace") or None, **more}


async def show_forgetting(page: Page) -> Response:
    """Show what would be forgotten, before it is."""
    form = page.query
    plan = await page.rest("POST", "/v1/memory/forget", _forgetting(form, dry_run=True))
    return page.render("forget.html", plan=plan, form=form, back=page.local(form.get("back")))
