"""Approve, reject and undo changes; review quarantined memories."""

from __future__ import annotations

from typing import Any

from agent_memory.interfaces.console.actions.registry import Actions
from agent_memory.interfaces.console.frame import Fields, Page

ACTIONS = Actions()


@ACTIONS.add("approve-change", "POST /v1/changes/{change_id}/approve")
async def _approve_change(page: Page, form: Fields) -> str | None:
    change: dict[str, Any] = await page.rest("POST", f"/v1/changes/{form['id']}/approve")
    if receipt := change.get("receipt_id"):
        return f"undo-forget:{receipt}"
    return f"undo-change:{change['id']}"


@ACTIONS.add("reject-change", "POST /v1/changes/{change_id}/reject")
async def _reject_change(page: Page, form: Fields) -> None:
    await page.rest("POST", f"/v1/changes/{form['id']}/reject")


@ACTIONS.add("undo-change", "POST /v1/changes/{change_id}/undo")
async def _undo_change(page: Page, form: Fields) -> str:
    change = await page.rest("POST", f"/v1/changes/{form['id']}/undo")
    return f"undo-change:{change['id']}"


@ACTIONS.add("undo-batch", "POST /v1/changes/batches/{batch_id}/undo")
async def _undo_batch(page: Page, form: Fields) -> None:
    await page.rest("POST", f"/v1/changes/batches/{form['id']}/undo")


@ACTIONS.add("approve-quarantined", "POST /v1/quarantine/{memory_id}/approve")
async def _approve_quarantined(page: Page, form: Fields) -> None:
    await page.rest("POST", f"/v1/quarantine/{form['id']}/approve")


@ACTIONS.add("reject-quarantined", "POST /v1/quarantine/{memory_id}/reject")
async def _reject_quarantined(page: Page, form: Fields) -> None:
    await page.rest("POST", f"/v1/quarantine/{form['id']}/reject")
