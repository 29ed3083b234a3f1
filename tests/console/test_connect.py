"""Connect an app in a real browser that starts on the app's site and returns to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
from playwright.async_api import expect

from agent_memory.foundation.core.settings import Settings
from agent_memory.interfaces.http.app import create_app
from agent_memory.runtime import open_runtime
from tests.console.conftest import ADMIN
from tests.interfaces.oauth_server.conftest import Site
from tests.support.api import bound_socket, serving


@asynccontextmanager
async def app_site(link: list[str], calls: list[str]) -> AsyncGenerator[str]:
    """Serve a page with the link, and record every callback."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        path = (await reader.readuntil(b"\r\n\r\n")).split()[1].decode()
        if path.startswith("/callback"):
            calls.append(path)
        body = (
            f'<!doctype html><link rel="icon" href="data:,"><a href="{link[0].replace("&", "&amp;")}">Connect</a>'
            if path == "/"
            else "connected"
        )
        head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        writer.write((head + body).encode())
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"http://localhost:{server.sockets[0].getsockname()[1]}"


async def test_browser_logs_in_agrees_and_returns_to_the_app(
    module_settings: Callable[..., Settings], redis_url: str, new_page: Callable[..., Any]
) -> None:
    listener = bound_socket()
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    settings = module_settings(AUTH_MODE="token", AUTH_ADMIN_TOKEN=ADMIN, OAUTH_SERVER="true", PUBLIC_URL=url)
    link, calls = [""], list[str]()
    async with (
        open_runtime(settings, redis_url) as runtime,
        serving(create_app(settings, runtime), listener=listener),
        app_site(link, calls) as app_url,
        httpx.AsyncClient(base_url=url, headers={"x-api-key": ADMIN}) as operator,
    ):
        site = Site(url, settings, runtime, operator)
        key, app = await site.key(), site.app(redirect_uri=f"{app_url}/callback")
        await app.register(client_name="Example app")
        link[0] = url + app.link()
        page = await new_page(app_url)
        await page.goto("/")
        await page.get_by_role("link", name="Connect").click()
        await page.get_by_label("API key").fill(key["token"])
        await page.get_by_role("button", name="Log in").click()
        await expect(page.get_by_text("Example app")).to_be_visible()
        await expect(page.get_by_text("http://localhost")).to_be_visible()
        await page.get_by_label("Only memories of").fill("ada")
        await page.get_by_role("button", name="Connect").click()
        await expect(page.get_by_text("connected")).to_be_visible()
        assert len(calls) == 1
        code = dict(httpx.URL(calls[0]).params)["code"]
        assert (await app.exchange(code)).status_code == 200
        # The second time, the browser is still logged in: its strict cookie was neither omitted nor replaced.
        await page.goto("/")
        await page.get_by_role("link", name="Connect").click()
        await page.get_by_role("button", name="Cancel").click()
        await expect(page.get_by_text("connected")).to_be_visible()
        assert dict(httpx.URL(calls[1]).params)["error"] == "access_denied"
        # The operator sees the connection among the keys.
        assert "Example app (http://localhost)" in [each["description"] for each in await site.keys()]
