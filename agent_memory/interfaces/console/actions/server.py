"""Save the rules that determine what the server remembers."""

from __future__ import annotations

from typing import Any

from agent_memory.interfaces.console.actions.registry import Actions
from agent_memory.interfaces.console.frame import Fields, Page

ACTIONS = Actions()


@ACTIONS.add("save-rules", "PUT /v1/extraction-rules")
async def _save_rules(page: Page, form: Fields) -> None:
    """Save the extraction rules of a namespace. Each line with a category is `name: description`."""
    pairs = [line.partition(":") for line in _lines(form.get("categories", ""))]
    body: dict[str, Any] = {
        "instructions": form.get("instructions", "").strip() or None,
        "categories": [{"name": name.strip(), "description": about.strip()} for name, _, about in pairs],
        "do_not_record": _lines(form.get("do_not_record", "")),
        "timezone": form.get("timezone", "").strip() or None,
        "language": form.get("language", "").strip() or None,
        "review": "review" in form,
    }
    namespace, user_id = (form.get(name) or None for name in ("namespace", "user_id"))
    await page.rest("PUT", "/v1/extraction-rules", body, namespace=namespace, user_id=user_id)


def _lines(text: str) -> list[str]:
    return [line for each in text.splitlines() if (line := each.strip())]
