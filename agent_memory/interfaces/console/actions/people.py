"""Erase a person's data; load or remove the demo."""

from __future__ import annotations

import asyncio

from starlette.responses import Response

from agent_memory.foundation.core.errors import BadInput
from agent_memory.interfaces.console.actions.registry import Actions
from agent_memory.interfaces.console.demo import DEMO_SESSION, DEMO_USER, demo_memories, demo_messages
from agent_memory.interfaces.console.frame import Fields, Page

ACTIONS = Actions()


@ACTIONS.add("erase", "DELETE /v1/users/{user_id}")
async def _erase(page: Page, form: Fields) -> Response:
    """Erase a person's data if the user typed the person's id again as confirmation, and redirect to the receipt."""
    user = form["user"]
    if form["typed"].strip() != user:
        raise BadInput(page.words["typed_wrong"], field="typed")
    _, headers = await page.rest.answer("DELETE", f"/v1/users/{user}", namespace=form.get("namespace") or None, wait=10)
    return page.redirect(page.url(f"/jobs/{headers['x-operation-id']}", done="erase"))


@ACTIONS.add("load-demo", "POST /v1/working-memory/{session_id}/messages", "POST /v1/long-term-memory/", "PUT /v1/blocks/{label}")
async def _load_demo(page: Page, form: Fields) -> None:
    messages = demo_messages()
    body = {"user_id": DEMO_USER, "messages": messages}
    await page.rest("POST", f"/v1/working-memory/{DEMO_SESSION}/messages", body, wait="promoted")
    await asyncio.gather(
        page.rest("POST", "/v1/long-term-memory/", {"memories": demo_memories(messages), "deduplicate": False}, wait=5),
        page.rest(
            "PUT", "/v1/blocks/cooking", {"value": page.words["demo_block"], "description": page.words["demo_block_for"]}, user_id=DEMO_USER
        ),
    )


@ACTIONS.add("remove-demo", "DELETE /v1/users/{user_id}")
async def _remove_demo(page: Page, form: Fields) -> None:
    await page.rest("DELETE", f"/v1/users/{DEMO_USER}", wait=10)
