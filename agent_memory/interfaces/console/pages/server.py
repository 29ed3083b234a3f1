"""Show the server's state, and the rules for what it remembers."""

from __future__ import annotations

import asyncio

from starlette.responses import Response

from agent_memory.interfaces.console.frame import Page


async def show_server(page: Page) -> Response:
    whose = {"namespace": page.query.get("namespace"), "user_id": page.query.get("user")}
    readiness, rules, schema = await asyncio.gather(
        page.readiness(),
        page.read_if_allowed("/v1/extraction-rules", **whose),
        page.read_if_allowed("/v1/profile/schema", namespace=whose["namespace"]),
    )
    return page.render("server.html", readiness=readiness, rules=rules, schema=schema, whose=whose)
