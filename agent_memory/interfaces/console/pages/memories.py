"""Search memories, and preview what would be forgotten."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from starlette.responses import Response

from agent_memory.foundation.core.errors import BadInput
from agent_memory.interfaces.console.frame import Fields, Page
from agent_memory.interfaces.console.pages.changes import saved_diff

FILTERS = {
    "user": "user_id",
    "namespace": "namespace",
    "session": "session_id",
    "agent": "agent_id",
    "kind": "memory_type",
    "topic": "topics",
    "entity": "entities",
    "source": "source_class",
    "writer": "written_by",
}
_DAYS = {"since": "gte", "before": "lt"}
MODES = ("hybrid", "semantic", "keyword")
KINDS = ("semantic", "episodic", "procedural", "message")
_SOURCES = ("user", "assistant", "tool", "client", "import", "inference")
_PAGE = 25


async def show_memories(page: Page) -> Response:
    search = search_of(page)
    results = await page.rest("POST", "/v1/long-term-memory/search", search)
    most_words = max((each["explanation"]["words"] or 0 for each in results["memories"] if each["explanation"]), default=0)
    await page.name_keys()
    note_ends(results["memories"])
    results["memories"] = _without_same_words(results["memories"])
    return page.render(
        "memories.html",
        saved=await saved_diff(page),
        results=results,
        filters=FILTERS,
        choices=_choices(page),
        modes=MODES,
        kinds=KINDS,
        search=search,
        most_words=most_words,
    )


def _without_same_words(memories: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Omit former versions with the same text as another version of the memory."""
    shown_versions = {(each["id"], each["text"]) for each in memories if each["end"] != "retired"}
    shown_memories: list[dict[str, Any]] = []
    for each in memories:
        if each["end"] != "retired" or (each["id"], each["text"]) not in shown_versions:
            shown_versions.add((each["id"], each["text"]))
            shown_memories.append(each)
    return shown_memories


def _choices(page: Page) -> dict[str, dict[str, str]]:
    words = page.words
    choices = {
        "kind": {value: words[f"kind_{value}"] for value in KINDS},
        "source": {value: words[f"filter_source_{value}"] for value in _SOURCES},
    }
    # Only administrators may read the names of keys. Others type the writer that a memory shows.
    return choices | ({"writer": {**page.key_names, "anonymous": words["written_open"]}} if page.key_names else {})


def note_ends(memories: Iterable[dict[str, Any]]) -> None:
    """Set `end` and `end_at` in each memory to why and when it stopped being current."""
    now = datetime.now(UTC)
    for each in memories:
        each["end"], each["end_at"] = _end_of(each, now)


def _end_of(memory: dict[str, Any], now: datetime) -> tuple[str | None, str | None]:
    times = {name: memory.get(name) for name in ("valid_from", "valid_to", "expires_at", "retired_at")}
    past = {name for name, time in times.items() if time and datetime.fromisoformat(time) <= now}
    if "retired_at" in past:
        return "retired", times["retired_at"]
    if memory.get("superseded_by"):
        return "replaced", times["valid_to"]
    for name in ("valid_to", "expires_at"):
        if name in past:
            return name, times[name]
    return ("ahead", times["valid_from"]) if times["valid_from"] and "valid_from" not in past else (None, None)


def search_of(page: Page) -> dict[str, Any]:
    """Build a search request from the page's query."""
    query = page.query
    search: dict[str, Any] = {field: {"eq": query[name]} for name, field in FILTERS.items() if name in query}
    search |= {"limit": _PAGE, "offset": query.number("offset", 0)}
    days = {operator: query[name] for name, operator in _DAYS.items() if name in query}
    if days:
        search["created_at"] = days
    if "ended" in query:
        search["history"] = True
    if "q" in query:
        if "newer" in query:
            search["recency_boost"] = True
        search |= {"text": query["q"], "search_mode": query.get("mode", "hybrid"), "explain": True}
    return search


async def show_forgetting(page: Page, form: Fields | None = None) -> Response:
    """Preview what a request would forget."""
    form = page.query if form is None else form
    plan = await page.rest("POST", "/v1/memory/forget", {**forget_body(page, form), "dry_run": True})
    seconds = page.settings.longterm.forget_undo_seconds
    until = (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat() if seconds else None
    back, ids = page.local(form.get("back")), chosen_ids(page, form)
    return page.render("forgetting/ask.html", plan=plan, form=form, ids=ids, back=back, undo_until=until)


def forget_body(page: Page, form: Fields) -> dict[str, Any]:
    return {"ids": chosen_ids(page, form), "user_id": form.get("user") or None, "namespace": form.get("namespace") or None}


def chosen_ids(page: Page, form: Fields) -> list[str]:
    """Return the ids selected in a form. Raises BadInput if there are none."""
    ids = [value for name, value in form.items() if name == "id" or name.startswith("id-")]
    if not ids:
        raise BadInput(page.words["none_chosen"], field="id")
    return ids
