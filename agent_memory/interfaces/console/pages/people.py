"""List users who have memories or sessions."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from agent_memory.interfaces.console.frame import Page

_PEOPLE = 25
# Each round reads the newest memories of users that earlier rounds did not find.
_ROUNDS = 4
_ROUND_MEMORIES = 100
_SEARCH = "/v1/long-term-memory/search"


async def show_people(page: Page) -> Response:
    """List users by newest memory.

    `before` continues the list, and `q` is a prefix of user ids.
    """
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
    """Return each user's newest memory, newest first, and where the next page starts."""
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
