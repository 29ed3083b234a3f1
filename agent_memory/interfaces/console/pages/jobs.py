"""Show background work that is waiting, will be retried, or has failed for good."""

from __future__ import annotations

import asyncio

from starlette.responses import Response

from agent_memory.interfaces.console.frame import Page
from agent_memory.interfaces.console.live import work_counters
from agent_memory.interfaces.console.pages.charts import PERIODS, charts_of

KINDS = ("deletion", "session", "extraction", "memory", "follow", "item", "order")
_PAGE = 20


async def show_jobs(page: Page) -> Response:
    query = page.query
    state = "dead" if query.get("tab") == "dead" else None
    readiness, found, history = await asyncio.gather(
        page.readiness(),
        page.read_if_allowed("/v1/operations", state=state, kind=query.get("kind"), limit=_PAGE, offset=query.number("offset", 0)),
        page.read_if_allowed("/v1/metrics/history", period=query.get("period")),
    )
    return page.render(
        "jobs.html",
        found=found,
        kinds=KINDS,
        size=_PAGE,
        work=readiness["checks"].get("work", {}),
        live=work_counters(readiness),
        charts=charts_of(history, ("pending", "oldest", "dead")),
        periods=PERIODS,
    )


async def show_job(page: Page) -> Response:
    """Show one operation. For an erasure, the page is the receipt."""
    name = page.request.path_params["operation_id"]
    return page.render("job.html", job=await page.rest("GET", f"/v1/operations/{name}"))
