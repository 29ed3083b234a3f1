"""Pages for server status, rules, API keys, and background work."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.responses import Response

from agent_memory.foundation.core.errors import NotFound
from agent_memory.foundation.core.scope import Role
from agent_memory.interfaces.console.frame import Page
from agent_memory.interfaces.console.live import work_counters
from agent_memory.interfaces.console.pages.charts import PERIODS, charts_of
from agent_memory.interfaces.console.pages.export import attachment

KINDS = ("deletion", "session", "extraction", "memory", "follow", "item", "order")
_PAGE = 20
_FACTS = 5
_LOOKS = 40


async def show_server(page: Page) -> Response:
    owner = {"namespace": page.query.get("namespace"), "user_id": page.query.get("user")}
    readiness, rules, schema = await asyncio.gather(
        page.readiness(),
        page.read_if_allowed("/v1/extraction-rules", **owner),
        page.read_if_allowed("/v1/profile/schema", namespace=owner["namespace"]),
    )
    return page.render("server.html", readiness=readiness, rules=rules, schema=schema, owner=owner)


async def show_keys(page: Page, created: dict[str, Any] | None = None, done: str = "") -> Response:
    """List keys. If one was just created, show its secret once."""
    token_list = await page.read_if_allowed("/v1/auth/tokens")
    is_operator = page.principal is not None and page.principal.operator
    keys = token_list and token_list["tokens"][::-1]
    return page.render("keys.html", keys=keys, created=created, done=done, roles=list(Role), is_operator=is_operator)


async def show_jobs(page: Page) -> Response:
    query = page.query
    state = "dead" if query.get("tab") == "dead" else None
    readiness, results, history = await asyncio.gather(
        page.readiness(),
        page.read_if_allowed("/v1/operations", state=state, kind=query.get("kind"), limit=_PAGE, offset=query.number("offset", 0)),
        page.read_if_allowed("/v1/metrics/history", period=query.get("period")),
    )
    return page.render(
        "jobs.html",
        results=results,
        kinds=KINDS,
        size=_PAGE,
        work=readiness["checks"].get("work", {}),
        live=work_counters(readiness),
        charts=charts_of(history, ("pending", "oldest", "dead")),
        periods=PERIODS,
    )


async def show_job(page: Page) -> Response:
    """Show one operation. For an erasure, this page is the receipt."""
    name = page.request.path_params["operation_id"]
    if page.query.get("format") == "json":
        return page.rest.forward("GET", f"/v1/operations/{name}", {"content-disposition": attachment(f"{name}.json")})
    await page.name_keys()
    job = await page.read_if_allowed(f"/v1/operations/{name}") if "open" in page.query else await page.rest("GET", f"/v1/operations/{name}")
    is_unlisted = job is None
    if job is None:
        # The previous page showed this operation, so the operation has ended since then.
        query = page.query
        session = {"user_id": query.get("user"), "namespace": query.get("namespace"), "session_id": query.get("session")}
        job = {"id": name, "kind": name.partition("-")[0], "state": "done", **session}
        if job["kind"] not in KINDS:
            raise NotFound(page.words["no_page"])
    if job["state"] in ("done", "dead") and page.query.get("done") == "replay-job":
        del page.query["done"]
    facts, look = await _facts_of(page, job), page.query.number("look", 0)
    return page.render("job.html", job=job, is_unlisted=is_unlisted, facts=facts, look=look, most_looks=_LOOKS)


async def _facts_of(page: Page, job: dict[str, Any]) -> list[Any]:
    """Return the newest facts from the session that an extraction processed."""
    if job["kind"] != "extraction" or job["state"] != "done" or not job.get("session_id"):
        return []
    filters = {name: {"eq": job[name]} for name in ("session_id", "user_id", "namespace") if job.get(name)}
    results = await page.rest("POST", "/v1/long-term-memory/search", {**filters, "memory_type": {"ne": "message"}, "limit": _FACTS})
    return results["memories"]
