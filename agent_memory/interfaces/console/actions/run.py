"""Run an action, given its name."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from starlette.responses import Response

from agent_memory.foundation.core.errors import NotFound
from agent_memory.interfaces.console.actions import jobs, keys, memories, people, review, server
from agent_memory.interfaces.console.frame import Page

ACTIONS = memories.ACTIONS | people.ACTIONS | review.ACTIONS | jobs.ACTIONS | keys.ACTIONS | server.ACTIONS


async def do_action(page: Page) -> Response:
    """Run an action, and redirect to the page that the request came from. That page reports success."""
    name = page.request.path_params["action"]
    if name not in ACTIONS:
        raise NotFound(page.words["no_page"])
    form = await page.form()
    done = await ACTIONS[name].run(page, form)
    if isinstance(done, Response):
        return done
    return page.redirect(_with_query(page.local(form.get("back")), done=name, undo=done))


def _with_query(address: str, **changes: str | None) -> str:
    parts = urlsplit(address)
    query = {name: value for name, value in parse_qsl(parts.query) if name not in ("edit", *changes)}
    query |= {name: value for name, value in changes.items() if value is not None}
    return urlunsplit(parts._replace(query=urlencode(query), fragment=""))
