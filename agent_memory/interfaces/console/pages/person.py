"""Show all data about one person, including before erasing it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

from starlette.responses import Response

from agent_memory.interfaces.console.frame import Page
from agent_memory.interfaces.console.pages.changes import add_forgotten, saved_diff, shown_change

_FACT_KINDS = ["semantic", "episodic", "procedural"]
_SHOWN_TYPES = {"said": ["message"], "both": [*_FACT_KINDS, "message"]}
_FACTS = 25
_CHANGES = 20
_EVENTS = 100
_MOST_MONTHS = 12
_SEARCH = "/v1/long-term-memory/search"


async def show_person(page: Page) -> Response:
    user, query = page.request.path_params["user_id"], page.query
    namespace = query.get("namespace")
    kind = query.get("kind", "facts")
    owner: dict[str, Any] = {"user_id": user, "namespace": namespace}
    week_ago = datetime.now(UTC) - timedelta(days=7)
    profile, blocks, facts, learned, changes, sessions, timeline, procedures, elsewhere = await asyncio.gather(
        page.read_if_allowed("/v1/profile", **owner),
        page.read_if_allowed("/v1/blocks", **owner),
        _search(page, user, namespace, _SHOWN_TYPES.get(kind, _FACT_KINDS), _FACTS, query.number("offset", 0)),
        _search(page, user, namespace, _FACT_KINDS, 5, created_at={"gte": week_ago.isoformat()}),
        page.read_if_allowed("/v1/changes", limit=_CHANGES, **owner),
        page.rest("GET", "/v1/working-memory/", limit=20, identities=True, **owner),
        page.read_if_allowed("/v1/timeline", limit=_EVENTS, **owner),
        page.read_if_allowed("/v1/procedures", limit=20, **owner),
        _count_elsewhere(page, user, namespace),
    )
    applied = [each for each in (changes or {"changes": []})["changes"] if each["state"] == "applied"]
    recent = [shown_change(each) for each in applied if datetime.fromisoformat(each["at"]) >= week_ago]
    await add_forgotten(page, recent)
    await page.name_keys()
    # Without a namespace, the page omits profiles and blocks in namespaces.
    others = {each.get("namespace") for each in (*facts["memories"], *sessions["identities"])} - {namespace, None}
    return page.render(
        "person.html",
        saved=await saved_diff(page),
        user=user,
        namespace=namespace,
        kind=kind,
        profile=profile,
        blocks=blocks,
        facts=facts,
        learned=learned,
        changes=recent,
        sessions=sessions,
        timeline=timeline,
        drawing=_draw(timeline["events"]) if timeline else None,
        procedures=procedures,
        elsewhere=elsewhere,
        namespaces=sorted(others) if namespace is None else [],
    )


async def _search(page: Page, user: str, namespace: str | None, kinds: list[str], limit: int, offset: int = 0, **filters: Any) -> Any:
    search = {"user_id": {"eq": user}, "memory_type": {"any": kinds}, "limit": limit, "offset": offset, **filters}
    if namespace is not None:
        search["namespace"] = {"eq": namespace}
    return await page.rest("POST", _SEARCH, search)


async def _count_elsewhere(page: Page, user: str, namespace: str | None) -> dict[str, Any] | None:
    if namespace is None:
        return None
    search = {"user_id": {"eq": user}, "filter": {"not": {"namespace": {"eq": namespace}}}, "limit": _FACTS}
    memories, sessions = await asyncio.gather(
        page.rest("POST", _SEARCH, search), page.rest("GET", "/v1/working-memory/", limit=100, identities=True, user_id=user)
    )
    others = [each for each in sessions["identities"] if each["namespace"] != namespace]
    names = sorted({each.get("namespace") or page.words["no_namespace"] for each in (*memories["memories"], *others)})
    return {"memories": memories["total"], "sessions": len(others), "names": names} if names else None


def _draw(events: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """Place events and dates on a line from 0 to 100. Return None for fewer than two events."""
    if len(events) < 2:
        return None
    starts = [date.fromisoformat(event["start"]) for event in events]
    ends = [date.fromisoformat(event.get("end") or event["start"]) for event in events]
    first, last = min(starts), max(ends)
    span = max((last - first).days, 1)

    def place(day: date) -> float:
        return 2 + 96 * (day - first).days / span

    points = [
        {"x": place(start), "width": place(end) - place(start), "text": event["text"], "day": event["start"]}
        for event, start, end in zip(events, starts, ends, strict=True)
    ]
    return {"points": points, "marks": [{"x": place(day), "day": day.isoformat()} for day in _ticks(first, last)]}


def _ticks(first: date, last: date) -> list[date]:
    months = [date(year, month, 1) for year in range(first.year, last.year + 2) for month in range(1, 13)]
    months = [day for day in months if first < day < last]
    if len(months) > _MOST_MONTHS:
        months = [day for day in months if day.month == 1]
    return months[:: len(months) // _MOST_MONTHS + 1]


async def show_erasing(page: Page) -> Response:
    """Show how much an erasure would delete, before the user confirms it."""
    user, namespace = page.request.path_params["user_id"], page.query.get("namespace")
    memories, sessions, elsewhere = await asyncio.gather(
        _search(page, user, namespace, _SHOWN_TYPES["both"], 1),
        page.rest("GET", "/v1/working-memory/", limit=1, user_id=user, namespace=namespace),
        _count_elsewhere(page, user, namespace),
    )
    return page.render("erasures/ask.html", user=user, namespace=namespace, memories=memories, sessions=sessions, elsewhere=elsewhere)
