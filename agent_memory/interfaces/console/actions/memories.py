"""Edit, pin and forget memories; edit blocks."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.responses import Response

from agent_memory.foundation.core.errors import BadInput, Conflict
from agent_memory.interfaces.console.actions.registry import Actions
from agent_memory.interfaces.console.frame import Fields, Page

ACTIONS = Actions()


def _memory_path(form: Fields) -> str:
    return f"/v1/long-term-memory/{form['id']}"


@ACTIONS.add("edit-memory", "PATCH /v1/long-term-memory/{memory_id}", "GET /v1/long-term-memory/{memory_id}/history")
async def _edit_memory(page: Page, form: Fields) -> str:
    await page.rest("PATCH", _memory_path(form), {"text": form["text"]})
    versions = (await page.rest("GET", f"{_memory_path(form)}/history"))["versions"]
    return f"undo-edit:{versions[0]['version']}:{form['id']}"


@ACTIONS.add("undo-edit", "GET /v1/long-term-memory/{memory_id}/history", "PATCH /v1/long-term-memory/{memory_id}")
async def _undo_edit(page: Page, form: Fields) -> None:
    version, _, memory_id = form["id"].partition(":")
    path = f"/v1/long-term-memory/{memory_id}"
    versions = (await page.rest("GET", f"{path}/history"))["versions"]
    if len(versions) < 2 or str(versions[0]["version"]) != version:
        raise Conflict(page.words["status_409"])
    await page.rest("PATCH", path, {"text": versions[1]["record"]["text"]})


@ACTIONS.add("pin", "PATCH /v1/long-term-memory/{memory_id}")
async def _pin(page: Page, form: Fields) -> None:
    await page.rest("PATCH", _memory_path(form), {"pinned": True})


@ACTIONS.add("unpin", "PATCH /v1/long-term-memory/{memory_id}")
async def _unpin(page: Page, form: Fields) -> None:
    await page.rest("PATCH", _memory_path(form), {"pinned": False})


@ACTIONS.add("pin-chosen", "PATCH /v1/long-term-memory/{memory_id}")
async def _pin_chosen(page: Page, form: Fields) -> None:
    paths = [f"/v1/long-term-memory/{name}" for name in _chosen(page, form)]
    await asyncio.gather(*(page.rest("PATCH", path, {"pinned": True}) for path in paths))


@ACTIONS.add("forget", "POST /v1/memory/forget")
async def _forget(page: Page, form: Fields) -> str | None:
    receipt = (await page.rest("POST", "/v1/memory/forget", _forgetting(page, form)))["receipt_id"]
    return f"undo-forget:{receipt}" if receipt else None


@ACTIONS.add("undo-forget", "POST /v1/memory/forget/{receipt_id}/undo")
async def _undo_forget(page: Page, form: Fields) -> None:
    await page.rest("POST", f"/v1/memory/forget/{form['id']}/undo")


@ACTIONS.add("edit-block", "PUT /v1/blocks/{label}")
async def _edit_block(page: Page, form: Fields) -> None:
    names = {name: form.get(name) or None for name in ("user_id", "namespace", "agent_id")}
    headers = {"if-match": f'"{form["version"]}"'}
    await page.rest("PUT", f"/v1/blocks/{form['label']}", {"value": form["value"]}, headers=headers, **names)


def _chosen(page: Page, form: Fields) -> list[str]:
    """Return the ids in a form: one id, or the ids of the selected lines. Raises BadInput if there are none."""
    ids = [value for name, value in form.items() if name == "id" or name.startswith("id-")]
    if not ids:
        raise BadInput(page.words["none_chosen"], field="id")
    return ids


def _forgetting(page: Page, form: Fields, **more: Any) -> dict[str, Any]:
    return {"ids": _chosen(page, form), "user_id": form.get("user") or None, "namespace": form.get("namespace") or None, **more}


async def show_forgetting(page: Page, form: Fields | None = None) -> Response:
    """Preview what would be forgotten, before anything is forgotten."""
    form = page.query if form is None else form
    plan = await page.rest("POST", "/v1/memory/forget", _forgetting(page, form, dry_run=True))
    return page.render("forget.html", plan=plan, form=form, ids=_chosen(page, form), back=page.local(form.get("back")))


ACTIONS.add("preview-forget", "POST /v1/memory/forget")(show_forgetting)
