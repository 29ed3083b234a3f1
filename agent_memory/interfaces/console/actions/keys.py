"""Create, rotate and revoke API keys. A secret appears in only one response, and never in a URL."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from agent_memory.foundation.core.errors import BadInput
from agent_memory.interfaces.console.actions.registry import Actions
from agent_memory.interfaces.console.frame import Fields, Page
from agent_memory.interfaces.console.pages.keys import show_keys

ACTIONS = Actions()


@ACTIONS.add("create-key", "POST /v1/auth/tokens", "GET /v1/auth/tokens")
async def _create_key(page: Page, form: Fields) -> Response:
    limits = {name: _listed(form.get(name, "")) for name in ("namespaces", "users", "agents")}
    body: dict[str, Any] = {"description": form.get("description", ""), "role": form["role"], **limits}
    if form.get("tenant", "").strip():
        body["tenant"] = form["tenant"].strip()
    if form.get("days", "").strip():
        body["expires_days"] = form.number("days", 0)
    return await show_keys(page, await page.rest("POST", "/v1/auth/tokens", body), "create-key")


@ACTIONS.add("rotate-key", "POST /v1/auth/tokens/{token_id}/rotate", "GET /v1/auth/tokens")
async def _rotate_key(page: Page, form: Fields) -> Response:
    return await show_keys(page, await page.rest("POST", f"/v1/auth/tokens/{form['id']}/rotate", {}), "rotate-key")


@ACTIONS.add("revoke-key", "DELETE /v1/auth/tokens/{token_id}")
async def _revoke_key(page: Page, form: Fields) -> None:
    if form.get("sure") != "1":
        raise BadInput(page.words["say_sure"], field="sure")
    await page.rest("DELETE", f"/v1/auth/tokens/{form['id']}")


def _listed(text: str) -> list[str] | None:
    """Return the comma-separated names in a text, or None (no limit) if there are none."""
    return [name for part in text.split(",") if (name := part.strip())] or None
