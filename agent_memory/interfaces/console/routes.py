"""Define the console's routes: its pages, and one path for each action."""

from __future__ import annotations

from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.types import ASGIApp

from agent_memory.features.access.browser_sessions import LOGIN_SECONDS, BrowserSessions
from agent_memory.foundation.api.operation import NamedRoute
from agent_memory.foundation.core.errors import NotFound, Unauthenticated
from agent_memory.foundation.core.settings import Settings
from agent_memory.interfaces.console.actions import do_action
from agent_memory.interfaces.console.assets import serve_asset
from agent_memory.interfaces.console.frame import Page, page_endpoint
from agent_memory.interfaces.console.live import show_live
from agent_memory.interfaces.console.pages.changes import show_changes, show_forgotten, show_history
from agent_memory.interfaces.console.pages.export import export_person
from agent_memory.interfaces.console.pages.memories import show_forgetting, show_memories
from agent_memory.interfaces.console.pages.overview import show_overview
from agent_memory.interfaces.console.pages.people import show_people
from agent_memory.interfaces.console.pages.person import show_erasing, show_person
from agent_memory.interfaces.console.pages.prompt_lab import show_prompt
from agent_memory.interfaces.console.pages.server import show_job, show_jobs, show_keys, show_server
from agent_memory.interfaces.console.pages.sessions import show_session
from agent_memory.interfaces.console.paths import BASE

_LOGIN_COOKIE = "agent_memory_login"
_PAGES = {
    "": show_overview,
    "/people": show_people,
    "/people/{user_id:path}": show_person,
    "/memories": show_memories,
    "/prompt": show_prompt,
    "/sessions/{session_id}": show_session,
    "/forget": show_forgetting,
    "/forgotten/{receipt_id}": show_forgotten,
    "/export/{user_id:path}": export_person,
    "/erase/{user_id:path}": show_erasing,
    "/changes": show_changes,
    "/history/{memory_id:path}": show_history,
    "/jobs": show_jobs,
    "/jobs/{operation_id}": show_job,
    "/keys": show_keys,
    "/server": show_server,
}


def console_routes(settings: Settings, rest_app: ASGIApp) -> list[BaseRoute]:
    """Return the console's routes. `rest_app` serves REST for authenticated callers."""
    pages = [
        NamedRoute(BASE + path, page_endpoint(handler, settings, rest_app), include_in_schema=False) for path, handler in _PAGES.items()
    ]
    return [
        NamedRoute(BASE + "/static/{name}", serve_asset, include_in_schema=False),
        NamedRoute(
            BASE + "/login", page_endpoint(_log_in, settings, rest_app, public=True), methods=["GET", "POST"], include_in_schema=False
        ),
        NamedRoute(BASE + "/login/start", page_endpoint(_start_login, settings, rest_app, public=True), include_in_schema=False),
        NamedRoute(BASE + "/login/callback", page_endpoint(_finish_login, settings, rest_app, public=True), include_in_schema=False),
        NamedRoute(BASE + "/logout", page_endpoint(_log_out, settings, rest_app, public=True), methods=["POST"], include_in_schema=False),
        NamedRoute(BASE + "/live", page_endpoint(show_live, settings, rest_app, public=True), include_in_schema=False),
        NamedRoute(BASE + "/do/{action}", page_endpoint(do_action, settings, rest_app), methods=["POST"], include_in_schema=False),
        *pages,
        NamedRoute(BASE + "/{rest:path}", page_endpoint(_no_page, settings, rest_app), include_in_schema=False),
    ]


async def _log_in(page: Page) -> Response:
    if page.request.method == "GET":
        if page.principal is not None:
            return page.redirect(page.local(page.query.get("next")))
        return page.render("login.html", error="", next=page.query.get("next", ""))
    form = await page.form()
    try:
        page.log_in(await page.runtime[BrowserSessions].open_session(form.get("token", "").strip()))
    except Unauthenticated as error:
        return page.render("login.html", 401, error=error.message, next=form.get("next", ""))
    return page.redirect(page.local(form.get("next")))


async def _start_login(page: Page) -> Response:
    url, cookie = await page.runtime[BrowserSessions].provider.start(page.local(page.query.get("next")))
    response = page.redirect(url)
    path, is_secure = page.url("/login"), (page.settings.server.public_url or "").startswith("https:")
    # Lax, because the provider sends the browser back, and browsers that come from another site omit strict cookies.
    response.set_cookie(_LOGIN_COOKIE, cookie, LOGIN_SECONDS, path=path, secure=is_secure, httponly=True, samesite="lax")
    return response


async def _finish_login(page: Page) -> Response:
    """Log the browser in after it returns from the login provider."""
    cookie = page.request.cookies.get(_LOGIN_COOKIE, "")
    session, next_page = await page.runtime[BrowserSessions].finish_login(cookie, page.query)
    page.log_in(session)
    # After a redirect, the browser would still come from the provider's site, and omit the session's strict cookie.
    response = page.render("logged_in.html", next=page.local(next_page))
    response.delete_cookie(_LOGIN_COOKIE, page.url("/login"))
    return response


async def _log_out(page: Page) -> Response:
    await page.form()
    await page.log_out()
    return page.redirect(page.url("/login"))


async def _no_page(page: Page) -> Response:
    raise NotFound(page.words["no_page"])
