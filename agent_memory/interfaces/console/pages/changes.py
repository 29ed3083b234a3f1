"""Show changes to memories as diffs, and list pending reviews."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from contextlib import suppress
from difflib import SequenceMatcher
from itertools import groupby
from operator import itemgetter
from typing import Any

from starlette.responses import Response

from agent_memory.foundation.core.scope import Role
from agent_memory.interfaces.console.frame import Page
from agent_memory.interfaces.console.rest import RestError

KINDS = ("update", "supersede", "merge", "forget", "undo")
_PAGE = 20
_MOST_NAMED = 100
_MOST_SESSIONS = 5
_MOST_RECEIPTS = 5
_WORDS = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|\w+|\s+|.", re.DOTALL)
# Longer texts are shown whole, because the time to compare texts grows with the square of their length.
_MOST_COMPARED = 4000
# Fields that only the server uses, or that follow from the text.
_UNTOLD = (
    *("text", "written_by", "approved", "memory_hash", "discrete_memory_extracted", "access_count", "superseded_by", "supersedes"),
    *("updated_at", "persisted_at", "recorded_at", "retired_at", "last_accessed"),
)

_COUNTED = {"fact": "facts", "message": "messages", "session_message": "session_messages", "summary": "summaries"}

Pieces = list[tuple[str, str]]
"""Parts of a text, each marked `same`, `del` or `ins`."""


async def show_changes(page: Page) -> Response:
    query = page.query
    tab = query.get("tab", "waiting")
    owner = {"user_id": query.get("user"), "namespace": query.get("namespace")}
    offset = query.number("offset", 0)
    await page.count_decisions()
    if tab == "receipts":
        await page.name_keys()
        receipts = await page.rest("GET", "/v1/operations", state="done", kind="deletion", limit=_PAGE, offset=offset)
        return page.render("erasures/receipts.html", tab=tab, results=receipts, size=_PAGE)
    if tab == "waiting":
        proposals, quarantine = await asyncio.gather(
            page.read_if_allowed("/v1/changes", state="proposed", limit=_PAGE, offset=offset, **owner),
            page.read_if_allowed("/v1/quarantine", limit=_PAGE, **owner),
        )
    else:
        kind = query.get("kind")
        # Undoing a request to forget is not a separate change. Instead, the request's record becomes `undone`.
        choice = {"state": "undone"} if kind == "undo" else {"kind": kind}
        proposals = await page.read_if_allowed("/v1/changes", limit=_PAGE, offset=offset, **choice, **owner)
        quarantine = {"memories": [], "total": 0}
    await page.name_keys()
    changes = proposals["changes"] if proposals else []
    await asyncio.gather(_add_texts(page, changes), add_forgotten(page, changes))
    batches = Counter(change["batch_id"] for change in changes if change["state"] == "applied")
    return page.render(
        "changes.html",
        tab=tab,
        kinds=KINDS,
        results=proposals,
        runs=[[shown_change(change) for change in run] for _, run in groupby(changes, itemgetter("batch_id"))],
        batches=batches,
        quarantine=quarantine,
        size=_PAGE,
    )


async def saved_diff(page: Page) -> Pieces:
    """Return a diff of the edit that led to this page."""
    memory_id = page.query.get("changed")
    if memory_id is None or page.query.get("done") not in ("edit-memory", "undo-edit"):
        return []
    history = await page.read_if_allowed(f"/v1/long-term-memory/{memory_id}/history") or {"versions": []}
    texts = [each["record"]["text"] for each in history["versions"][:2]]
    return compare(texts[1], texts[0]) if len(texts) == 2 else []


async def _add_texts(page: Page, changes: list[dict[str, Any]]) -> None:
    """Add planned deletions (`planned`) and missing message texts to proposals."""
    for change in [each for each in changes if each["state"] == "proposed" and each["kind"] == "forget"]:
        named = [each for each in change["memories"] if not (each.get("before") or each.get("after"))]
        before: dict[str, Any] = next((each["before"] for each in change["memories"] if each.get("before")), {})
        unknown = {each["memory_id"]: each for each in named}
        owner = {name: before.get(name) for name in ("user_id", "namespace")}
        ids = [*unknown, *(each["memory_id"] for each in change["memories"] if each["memory_id"] not in unknown)]
        with suppress(RestError):
            plan = await page.rest("POST", "/v1/memory/forget", {"ids": ids[:_MOST_NAMED], "dry_run": True, **owner})
            if len(ids) <= _MOST_NAMED:
                change["planned"] = Counter(_COUNTED[match["kind"]] for match in plan["matches"])
            for match in plan["matches"]:
                if match["id"] in unknown:
                    unknown[match["id"]]["before"] = {"text": match["text"], "session_id": match.get("session_id"), **owner}
                    unknown[match["id"]]["kind"] = f"match_{match['kind']}"
            await _add_writers(page, unknown, owner)


async def _add_writers(page: Page, messages: dict[str, dict[str, Any]], owner: dict[str, Any]) -> None:
    sessions = {each["before"]["session_id"] for each in messages.values() if each.get("before", {}).get("session_id")}
    for session in sorted(sessions)[:_MOST_SESSIONS]:
        working_memory = await page.read_if_allowed(f"/v1/working-memory/{session}", recent_messages_limit=_MOST_NAMED, **owner) or {
            "messages": []
        }
        for message in working_memory["messages"]:
            if message["id"] in messages:
                messages[message["id"]]["before"]["written_by"] = message.get("written_by")


async def add_forgotten(page: Page, changes: list[dict[str, Any]]) -> None:
    """Add the deleted texts to requests to forget that the caller can undo."""
    if page.principal is None or page.principal.role is Role.READ:
        return

    async def add(change: dict[str, Any]) -> None:
        with suppress(RestError):  # It is too late, or the data is being erased. The change then shows only its counts.
            change["texts"] = (await page.rest("GET", f"/v1/memory/forget/{change['receipt_id']}"))["items"]

    await asyncio.gather(*(add(change) for change in [each for each in changes if each.get("undo_until")][:_MOST_RECEIPTS]))


async def show_forgotten(page: Page) -> Response:
    """Show what a request to forget has deleted or, after an undo, restored."""
    receipt = await page.rest("GET", f"/v1/memory/forget/{page.request.path_params['receipt_id']}")
    await page.name_keys()
    back = page.local(page.query["back"]) if "back" in page.query else None
    return page.render("forgetting/forgotten.html", receipt=receipt, texts=receipt["items"], back=back)


async def show_history(page: Page) -> Response:
    """Show all versions of a memory, each compared with the previous one."""
    history = await page.rest("GET", f"/v1/long-term-memory/{page.request.path_params['memory_id']}/history")
    await page.name_keys()
    texts = [*(each["record"]["text"] for each in history["versions"]), ""]
    fields = [_fields(each["diff"]) for each in history["versions"]]
    versions = list(zip(history["versions"], map(compare, texts[1:], texts), fields, strict=False))
    return page.render("history.html", versions=versions, changes=[shown_change(each) for each in history["changes"]])


def shown_change(change: dict[str, Any]) -> dict[str, Any]:
    """Return a change with its memories shown as diffs."""
    return {**change, "lines": [_line(each) for each in change["memories"]]}


def _line(changed: dict[str, Any]) -> dict[str, Any]:
    before, after = changed.get("before") or {}, changed.get("after") or {}
    fields = _fields(changed.get("diff") or {}) if before and after else []
    record = after or before
    ends = bool(after.get("valid_to")) and not before.get("valid_to")
    return {
        "id": changed["memory_id"],
        "user_id": record.get("user_id"),
        "namespace": record.get("namespace"),
        "session_id": record.get("session_id"),
        "message": (record.get("extracted_from") or [changed["memory_id"] if record.get("session_id") else None])[0],
        "written_by": record.get("written_by"),
        "kind": changed.get("kind") or (f"kind_{record['memory_type']}" if "memory_type" in record else None),
        "pieces": [("del", after["text"])] if ends else compare(before.get("text", ""), after.get("text", "")),
        "fields": fields,
    }


def _fields(diff: dict[str, Any]) -> list[tuple[str, Any, Any]]:
    return [(name, *values) for name, values in diff.items() if name not in _UNTOLD]


def compare(before: str, after: str) -> Pieces:
    """Compare two texts word by word and return a merged list of parts."""
    if before == after:
        return [("same", after)] if after else []
    if not before or not after or len(before) + len(after) > _MOST_COMPARED:
        return [(kind, text) for kind, text in (("del", before), ("ins", after)) if text]
    old, new = _WORDS.findall(before), _WORDS.findall(after)
    pieces: Pieces = []
    for kind, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            pieces.append(("same", "".join(old[a:b])))
        else:
            pieces += [(name, text) for name, text in (("del", "".join(old[a:b])), ("ins", "".join(new[c:d]))) if text]
    return pieces
