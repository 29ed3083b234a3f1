"""The overview page with counts, server load over time, and how to get started."""

from __future__ import annotations

import asyncio

from starlette.responses import Response

from agent_memory.interfaces.console.demo import DEMO_SESSION, DEMO_USER
from agent_memory.interfaces.console.frame import Page
from agent_memory.interfaces.console.live import work_counters
from agent_memory.interfaces.console.pages.charts import PERIODS, charts_of

_CHARTS = ("memories", "sessions", "users", "requests", "times", "pending", "model_tokens", "healthy")


async def show_overview(page: Page) -> Response:
    rest = page.rest
    await page.count_decisions()
    await page.name_keys()
    memories, sessions, demo, readiness, history = await asyncio.gather(
        rest("POST", "/v1/long-term-memory/search", {"limit": 5}),
        rest("GET", "/v1/working-memory/", limit=5, identities=True),
        page.read_if_allowed(f"/v1/working-memory/{DEMO_SESSION}", user_id=DEMO_USER, recent_messages_limit=1),
        page.readiness(),
        page.read_if_allowed("/v1/metrics/history", period=page.query.get("period")),
    )
    return page.render(
        "overview.html",
        memories=memories,
        sessions=sessions,
        demo=demo is not None,
        demo_user=DEMO_USER,
        readiness=readiness,
        live=work_counters(readiness),
        charts=charts_of(history, _CHARTS),
        periods=PERIODS,
    )
