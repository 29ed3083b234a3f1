"""Show API keys, and what each key may access."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from agent_memory.foundation.core.scope import Role
from agent_memory.interfaces.console.frame import Page


async def show_keys(page: Page, created: dict[str, Any] | None = None, done: str = "") -> Response:
    """List keys. If the action `done` has just created a key, show its secret once."""
    found = await page.read_if_allowed("/v1/auth/tokens")
    is_operator = page.principal is not None and page.principal.operator
    keys = found and found["tokens"][::-1]
    return page.render("keys.html", keys=keys, created=created, done=done, roles=list(Role), is_operator=is_operator)
