"""Define the changes that console users can make through REST operations."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from starlette.responses import Response
from ulid import ULID

from agent_memory.foundation.core.errors import BadInput, Conflict, NotFound
from agent_memory.interfaces.console.demo import DEMO_SESSION, DEMO_USER, demo_memories, demo_messages
from agent_memory.interfaces.console.frame import Fields, Page
from agent_memory.interfaces.console.pages.memories import chosen_ids, forget_body, show_forgetting
from agent_memory.interfaces.console.pages.server import show_keys

Run = Callable[[Page, Fields], Awaitable[Response | str | None]]


@dataclass(frozen=True, slots=True)
class Action:
    """A registered action. `twins` are the REST operations it calls, as `METHOD /path`.

    `run` returns `<action>:<id>` for the "undo" button, None if it cannot be undone, or a page.
    """

    run: Run
    twins: tuple[str, ...]


ACTIONS: dict[str, Action] = {}
# After these, the page shows the memory with its change.
_SHOWN_AGAIN = ("add-memory", "edit-memory", "undo-edit", "restore-memory")
_MEMORY = "/v1/long-term-memory/{memory_id}"
# Actions that send one request about the id in the form, and the operation and body of each request.
_REQUESTS: dict[str, tuple[str, Any]] = {
    "pin": (f"PATCH {_MEMORY}", {"pinned": True}),
    "unpin": (f"PATCH {_MEMORY}", {"pinned": False}),
    "reject-change": ("POST /v1/changes/{change_id}/reject", None),
    "undo-batch": ("POST /v1/changes/batches/{batch_id}/undo", None),
    "approve-quarantined": ("POST /v1/quarantine/{memory_id}/approve", None),
    "reject-quarantined": ("POST /v1/quarantine/{memory_id}/reject", None),
    "replay-job": ("POST /v1/operations/{operation_id}/replay", None),
    "drop-job": ("DELETE /v1/operations/{operation_id}", None),
}


async def do_action(page: Page) -> Response:
    """Run an action, and redirect back to the page that sent the request."""
    name = page.request.path_params["action"]
    if name not in ACTIONS:
        raise NotFound(page.words["no_page"])
    form = await page.form()
    done = await ACTIONS[name].run(page, form)
    if isinstance(done, Response):
        return done
    changed = (form["id"].rpartition(":")[2] if name == "undo-edit" else form["id"]) if name in _SHOWN_AGAIN else None
    return page.redirect(_with_query(page.local(form.get("back")), changed, done=name, undo=done, changed=changed))


def _with_query(address: str, memory_id: str | None, **changes: str | None) -> str:
    parts = urlsplit(address)
    query = {name: value for name, value in parse_qsl(parts.query) if name not in ("edit", *changes)}
    query |= {name: value for name, value in changes.items() if value is not None}
    return urlunsplit(parts._replace(query=urlencode(query), fragment="" if memory_id is None else f"memory-{quote(memory_id)}"))


def _action(name: str, *twins: str) -> Callable[[Run], Run]:
    def register(run: Run) -> Run:
        ACTIONS[name] = Action(run, twins)
        return run

    return register


def _request(operation: str, body: Any) -> Run:
    method, template = operation.split()
    begin, _, rest = template.partition("{")

    async def run(page: Page, form: Fields) -> None:
        await page.rest(method, f"{begin}{form['id']}{rest.partition('}')[2]}", body)

    return run


for _name, (_operation, _body) in _REQUESTS.items():
    _action(_name, _operation)(_request(_operation, _body))
_action("preview-forget", "POST /v1/memory/forget")(show_forgetting)


@_action("edit-memory", f"PATCH {_MEMORY}", f"GET {_MEMORY}/history")
async def _edit_memory(page: Page, form: Fields) -> str:
    path = f"/v1/long-term-memory/{form['id']}"
    await page.rest("PATCH", path, {"text": form["text"]})
    versions = (await page.rest("GET", f"{path}/history"))["versions"]
    return f"undo-edit:{versions[0]['version']}:{form['id']}"


@_action("undo-edit", f"GET {_MEMORY}/history", f"PATCH {_MEMORY}")
async def _undo_edit(page: Page, form: Fields) -> None:
    version, _, memory_id = form["id"].partition(":")
    path = f"/v1/long-term-memory/{memory_id}"
    versions = (await page.rest("GET", f"{path}/history"))["versions"]
    if len(versions) < 2 or str(versions[0]["version"]) != version:
        raise Conflict(page.words["status_409"])
    await page.rest("PATCH", path, {"text": versions[1]["record"]["text"]})


@_action("add-memory", "POST /v1/long-term-memory/")
async def _add_memory(page: Page, form: Fields) -> None:
    form["id"] = str(ULID())
    memory = {"text": form["text"], "memory_type": "semantic", "user_id": form["user"], "namespace": form.get("namespace") or None}
    await page.rest("POST", "/v1/long-term-memory/", {"memories": [{"id": form["id"], **memory}]})


@_action("restore-memory", f"PATCH {_MEMORY}", "GET /v1/changes", "POST /v1/changes/{change_id}/undo")
async def _restore_memory(page: Page, form: Fields) -> Response | str | None:
    memory_id, end = form["id"], form["end"]
    if end in ("valid_to", "expires_at"):
        if not (await page.rest("PATCH", f"/v1/long-term-memory/{memory_id}", {end: None})).get(end):
            made = (await page.rest("GET", "/v1/changes", memory_id=memory_id, limit=1))["changes"]
            return next((f"undo-change:{each['id']}" for each in made if each["state"] == "applied" and _restores(each, end)), None)
    else:
        for change in (await page.rest("GET", "/v1/changes", memory_id=memory_id))["changes"]:
            ends = {each["memory_id"]: (each.get("after") or {}).get("superseded_by") for each in change["memories"]}
            if change["state"] == "applied" and ends.get(memory_id):
                return await _undo_change(page, Fields(id=change["id"]))
    raise Conflict(page.words["slot_is_taken"])


def _restores(change: dict[str, Any], end: str) -> bool:
    return any((each.get("diff") or {}).get(end, (None, end))[1] is None for each in change["memories"])


@_action("pin-chosen", f"PATCH {_MEMORY}")
async def _pin_chosen(page: Page, form: Fields) -> None:
    paths = [f"/v1/long-term-memory/{name}" for name in chosen_ids(page, form)]
    await asyncio.gather(*(page.rest("PATCH", path, {"pinned": True}) for path in paths))


@_action("export-chosen", f"GET {_MEMORY}")
async def _export_chosen(page: Page, form: Fields) -> Response:
    paths = [f"/v1/long-term-memory/{name}" for name in chosen_ids(page, form)]
    lines = [json.dumps(each, ensure_ascii=False) for each in await asyncio.gather(*(page.rest("GET", path) for path in paths))]
    headers = {"content-disposition": 'attachment; filename="memories.jsonl"'}
    return Response("\n".join([*lines, ""]), media_type="application/x-ndjson", headers=headers)


@_action("forget", "POST /v1/memory/forget")
async def _forget(page: Page, form: Fields) -> str | None:
    receipt = (await page.rest("POST", "/v1/memory/forget", forget_body(page, form)))["receipt_id"]
    return f"undo-forget:{receipt}" if receipt else None


@_action("edit-block", "PUT /v1/blocks/{label}")
async def _edit_block(page: Page, form: Fields) -> None:
    names = {name: form.get(name) or None for name in ("user_id", "namespace", "agent_id")}
    headers = {"if-match": f'"{form["version"]}"'}
    await page.rest("PUT", f"/v1/blocks/{form['label']}", {"value": form["value"]}, headers=headers, **names)


@_action("approve-change", "POST /v1/changes/{change_id}/approve")
async def _approve_change(page: Page, form: Fields) -> str:
    change = await page.rest("POST", f"/v1/changes/{form['id']}/approve")
    return f"undo-forget:{change['receipt_id']}" if change.get("receipt_id") else f"undo-change:{change['id']}"


@_action("undo-forget", "POST /v1/memory/forget/{receipt_id}/undo", "GET /v1/memory/forget/{receipt_id}")
async def _undo_forget(page: Page, form: Fields) -> Response:
    await page.rest("POST", f"/v1/memory/forget/{form['id']}/undo")
    return _came_back(page, form["id"], form.get("back"))


@_action("undo-change", "POST /v1/changes/{change_id}/undo", "GET /v1/memory/forget/{receipt_id}")
async def _undo_change(page: Page, form: Fields) -> Response | str:
    change = await page.rest("POST", f"/v1/changes/{form['id']}/undo")
    # Undoing a request to forget is not a separate change, and cannot be undone.
    return f"undo-change:{change['id']}" if change["kind"] == "undo" else _came_back(page, change["receipt_id"], form.get("back"))


def _came_back(page: Page, receipt_id: str, back: str | None) -> Response:
    path = f"/forgotten/{receipt_id}"
    back = None if back is None or urlsplit(back).path == urlsplit(page.url(path)).path else page.local(back)
    return page.redirect(page.url(path, done="undo-forget", back=back))


@_action("erase", "DELETE /v1/users/{user_id}")
async def _erase(page: Page, form: Fields) -> Response:
    """Erase a person's data and redirect to the receipt. The user must retype the person's id."""
    user = form["user"]
    if form["typed"].strip() != user:
        raise BadInput(page.words["typed_wrong"], field="typed")
    _, headers = await page.rest.answer("DELETE", f"/v1/users/{user}", namespace=form.get("namespace") or None, wait=10)
    return page.redirect(page.url(f"/jobs/{headers['x-operation-id']}", done="erase"))


@_action("load-demo", "POST /v1/working-memory/{session_id}/messages", "POST /v1/long-term-memory/", "PUT /v1/blocks/{label}")
async def _load_demo(page: Page, form: Fields) -> None:
    messages = demo_messages()
    body = {"user_id": DEMO_USER, "messages": messages}
    block = {"value": page.words["demo_block"], "description": page.words["demo_block_for"]}
    await page.rest("POST", f"/v1/working-memory/{DEMO_SESSION}/messages", body, wait="promoted")
    await asyncio.gather(
        page.rest("POST", "/v1/long-term-memory/", {"memories": demo_memories(messages), "deduplicate": False}, wait=5),
        page.rest("PUT", "/v1/blocks/cooking", block, user_id=DEMO_USER),
    )


@_action("remove-demo", "DELETE /v1/users/{user_id}")
async def _remove_demo(page: Page, form: Fields) -> None:
    await page.rest("DELETE", f"/v1/users/{DEMO_USER}", wait=10)


@_action("create-key", "POST /v1/auth/tokens", "GET /v1/auth/tokens")
async def _create_key(page: Page, form: Fields) -> Response:
    """Create an API key. Show its secret once, but never in a URL."""
    body: dict[str, Any] = {"description": form.get("description", ""), "role": form["role"]}
    body |= {name: _split(form.get(name, "").split(",")) or None for name in ("namespaces", "users", "agents")}
    if tenant := form.get("tenant", "").strip():
        body["tenant"] = tenant
    if form.get("days", "").strip():
        body["expires_days"] = form.number("days", 0)
    return await show_keys(page, await page.rest("POST", "/v1/auth/tokens", body), "create-key")


@_action("rotate-key", "POST /v1/auth/tokens/{token_id}/rotate", "GET /v1/auth/tokens")
async def _rotate_key(page: Page, form: Fields) -> Response:
    return await show_keys(page, await page.rest("POST", f"/v1/auth/tokens/{form['id']}/rotate", {}), "rotate-key")


@_action("revoke-key", "DELETE /v1/auth/tokens/{token_id}")
async def _revoke_key(page: Page, form: Fields) -> None:
    if form.get("sure") != "1":
        raise BadInput(page.words["say_sure"], field="sure")
    await page.rest("DELETE", f"/v1/auth/tokens/{form['id']}")


@_action("save-rules", "PUT /v1/extraction-rules")
async def _save_rules(page: Page, form: Fields) -> None:
    """Save rules from a form that has one line (`name: description`) per category."""
    pairs = [line.partition(":") for line in _split(form.get("categories", "").splitlines())]
    body: dict[str, Any] = {
        **{name: form.get(name, "").strip() or None for name in ("instructions", "timezone", "language")},
        "categories": [{"name": name.strip(), "description": about.strip()} for name, _, about in pairs],
        "do_not_record": _split(form.get("do_not_record", "").splitlines()),
        "review": "review" in form,
    }
    owner: dict[str, Any] = {name: form.get(name) or None for name in ("namespace", "user_id")}
    await page.rest("PUT", "/v1/extraction-rules", body, **owner)


def _split(parts: list[str]) -> list[str]:
    return [part.strip() for part in parts if part.strip()]
