"""Replay or drop dead letters: work that the workers gave up on."""

from __future__ import annotations

from agent_memory.interfaces.console.actions.registry import Actions
from agent_memory.interfaces.console.frame import Fields, Page

ACTIONS = Actions()


@ACTIONS.add("replay-job", "POST /v1/operations/{operation_id}/replay")
async def _replay_job(page: Page, form: Fields) -> None:
    await page.rest("POST", f"/v1/operations/{form['id']}/replay")


@ACTIONS.add("drop-job", "DELETE /v1/operations/{operation_id}")
async def _drop_job(page: Page, form: Fields) -> None:
    await page.rest("DELETE", f"/v1/operations/{form['id']}")
