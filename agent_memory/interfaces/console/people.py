"""Who is known, and everything that is known about one person."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

from starlette.responses import Response

from agent_memory.interfaces.console.frame import Page
from agent_memory.interfaces.console.rest import RestError

FACTS = ["semantic", "episodic", "procedural"]
_PEOPLE = 25
# Each round reads the newest memories of users that the rounds before did not meet.
_ROUNDS = 4
_ROUND_MEMORIES = 100
_FACTS = 25
_CHANGES = 20
_SEARCH = "/v1/long-term-memory/search"


async def show_people(page: Page) -> Response:
    """List users by their newest memory. `before` continues the list, `q` is how a user id begins."""
    begin, before = page.query.get("q"), page.query.get("before")
    people, before = await _users_with_memories(page, begin, before)
    if "before" not in page.query:
        sessions = await page.rest("GET", "/v1/working-memory/", limit=100, identities=True)
        for session in sessions["identities"]:
            user = session["user_id"]
            if user and user not in people and user.startswith(begin or ""):
                people[user] = {"user_id": user, "namespace": session["namespace"], "text": None, "created_at": None}
    return page.render("people.html", people=list(people.values()), before=before)


async def _users_with_memories(page: Page, begin: str | None, before: str | None) -> tuple[dict[str, Any], str | None]:
    """Return the newest memory of each user, newest first, and where the list goes on."""
    people: dict[str, Any] = {}
    for _ in range(_ROUNDS):
        search: dict[str, Any] = {"user_id": {"startswith": begin} if begin else {"exists": True}, "limit": _ROUND_MEMORIES}
        if before:
            search["created_at"] = {"lt": before}
        if people:
            search["filter"] = {"not": {"user_id": {"any": list(people)}}}
        memories = (await page.rest("POST", _SEARCH, search))["memories"]
        for memory in memories:
            if len(people) == _PEOPLE and memory["user_id"] not in people:
                return people, before
            people.setdefault(memory["user_id"], memory)
            before = memory["created_at"]
        if len(memories) < _ROUND_MEMORIES:
            return people, None
    return people, before


async def show_person(page: Page) -> Response:
    user, query = page.request.path_params["user_id"], page.query
    namespace = query.get("namespace")
    kind = query.get("kind", "facts")
    whose: dict[str, Any] = {"user_id": user, "namespace": namespace}
    week_ago = (datetime.now(UTC) - timedelta(days=7)).isoformat()
    profile, blocks, facts, learned, changes, sessions = await asyncio.gather(
        _unless_refused(page, "GET", "/v1/profile", **whose),
        _unless_refused(page, "GET", "/v1/blocks", **whose),
        _search(page, user, namespace, FACTS if kind == "facts" else ["message"], _FACTS, query.number("offset", 0)),
        _search(page, user, namespace, FACTS, 5, created_at={"gte": week_ago}),
        _unless_refused(page, "GET", "/v1/changes", limit=_CHANGES, **whose),
        page.rest("GET", "/v1/working-memory/", limit=20, identities=True, **whose),
    )
    recent = [
        change
        for change in (changes or {"changes": []})["changes"]
        if datetime.fromisoformat(change["at"]) >= datetime.fromisoformat(week_ago)
    ]
    return page.render(
        "person.html",
        user=user,
        namespace=namespace,
        kind=kind,
        profile=profile,
        blocks=blocks,
        facts=facts,
        learned=learned,
        changes=recent,
        sessions=sessions,
    )


async def _search(page: Page, user: str, namespace: str | None, kinds: list[str], limit: int, offset: int = 0, **filters: Any) -> Any:
    search = {"user_id": {"eq": user}, "memory_type": {"any": kinds}, "limit": limit, "offset": offset, **filters}
    if namespace is not None:
        search["namespace"] = {"eq": namespace}
    return await page.rest("POST", _SEARCH, search)


async def _unless_refused(page: Page, method: str, path: str, **query: Any) -> Any:
    """Return an answer; None if the caller reaches several namespaces and must choose one, or does not reach this part."""
    try:
        return await page.rest(method, path, **query)
    except RestError as error:
        if error.status not in (403, 404):
            raise
        return None
