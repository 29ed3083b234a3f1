"""Test the load charts and the counters that update while a page is open."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.async_api import Page, expect

from agent_memory.features.jobs.load_store import LoadStore
from agent_memory.foundation.core.settings import Settings
from agent_memory.interfaces.console.live import MOST_STREAMS, LiveStreams
from agent_memory.interfaces.http.app import create_app
from agent_memory.runtime import Runtime, open_runtime
from tests.console.conftest import ADMIN
from tests.console.test_access import key, logged_in
from tests.support.api import serving
from tests.support.processes import running
from tests.support.waiting import wait_until

Make = Callable[..., Any]
HIDE = """hidden => {
    Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
}"""


class Server:
    """A server in this process with a count of its open streams."""

    def __init__(self, url: str, runtime: Runtime, streams: LiveStreams) -> None:
        self.url = url
        self.runtime = runtime
        self.streams = streams

    async def has_streams(self, number: int) -> None:
        async def reached() -> bool:
            return self.streams.number == number

        await wait_until(reached, f"{number} streams")


@asynccontextmanager
async def watched(settings: Settings, redis_url: str) -> AsyncGenerator[Server]:
    async with open_runtime(settings, redis_url) as runtime:
        app = create_app(settings, runtime)
        async with serving(app) as url:
            try:
                yield Server(url, runtime, app.state.live)
            finally:
                app.state.live.end()


@pytest.fixture(scope="module")
async def server(module_settings: Callable[..., Settings], redis_url: str) -> AsyncGenerator[Server]:
    async with watched(module_settings(), redis_url) as one:
        now = await one.runtime[LoadStore].now()
        for minute in range(1, 600):
            totals = {"memories": 100_000 - minute, "sessions": 40, "users": 3, "pending": minute % 7, "dead": 0, "oldest_seconds": 0.5}
            counts = {"requests": 5, "failed": 1, "model_tokens": 20, "looks": 1, "well": 1, "bucket3": 5}
            await one.runtime[LoadStore].add(now - 60 * minute, counts, {60: totals, 600: totals})
        await store(one, "m0")
        yield one


async def store(server: Server, name: str) -> None:
    async with httpx.AsyncClient(base_url=server.url, timeout=30) as client:
        answer = await client.post("/v1/long-term-memory/", json={"memories": [{"id": name, "text": f"Ada saw {name}.", "user_id": "ada"}]})
        assert answer.status_code == 200, answer.text


@pytest.mark.parametrize(("path", "charts"), [("", 8), ("/jobs", 3)])
async def test_charts_are_drawn_and_show_the_value_under_the_pointer(new_page: Make, server: Server, path: str, charts: int) -> None:
    page: Page = await new_page(server.url)
    await page.goto(f"/console{path}")
    await expect(page.locator(".chart canvas")).to_have_count(charts)
    chart = page.locator(".chart", has=page.get_by_text("Waiting work", exact=True))
    before = await chart.locator("[data-value]").text_content()
    await chart.locator(".u-over").hover()
    await expect(chart.locator("[data-value]")).to_contain_text("·")
    await page.mouse.move(0, 0)
    await expect(chart.locator("[data-value]")).to_have_text(before or "")
    await page.get_by_role("link", name="Last day").click()
    await expect(page).to_have_url(f"{server.url}/console{path}?period=day")
    await expect(page.locator(".chart canvas")).to_have_count(charts)


async def test_charts_are_lines_without_scripts(new_page: Make, server: Server) -> None:
    page: Page = await new_page(server.url, java_script_enabled=False)
    await page.goto("/console")
    await expect(page.locator(".chart svg path[d^=M]")).to_have_count(10)
    await expect(page.get_by_role("img", name=re.compile(r"Memories, Last hour: 99,99\d; 99,9\d\d – 99,99\d"))).to_be_visible()
    await page.get_by_role("link", name="Last day").click()
    await expect(page.get_by_role("img", name=re.compile(r"Requests, sum, Last day: 2,99\d;"))).to_be_visible()


async def test_counters_follow_the_server_while_the_page_is_open(new_page: Make, server: Server) -> None:
    page: Page = await new_page(server.url)
    await page.goto("/console")
    waiting = page.locator('[data-live="pending"]')
    before = int(await waiting.text_content() or "")
    await store(server, "m1")
    await expect(waiting).not_to_have_text(str(before))
    await page.get_by_role("link", name="Jobs").click()
    row = page.locator('[data-live="memory.pending"]')
    number = int(await row.text_content() or "")
    await store(server, "m2")
    await expect(row).to_have_text(str(number + 1))
    await server.has_streams(1)


async def test_tab_has_one_stream_and_none_while_hidden(new_page: Make, server: Server) -> None:
    page: Page = await new_page(server.url)
    await page.goto("/console")
    await server.has_streams(1)
    await page.get_by_role("link", name="Jobs").click()
    await page.get_by_role("link", name="Overview").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
    await server.has_streams(1)
    await page.evaluate(HIDE, arg=True)
    await server.has_streams(0)
    await page.evaluate(HIDE, arg=False)
    await server.has_streams(1)
    await page.get_by_role("link", name="People").click()
    await server.has_streams(0)


async def test_streams_are_bounded_and_end_when_the_server_stops(module_settings: Callable[..., Settings], redis_url: str) -> None:
    async with watched(module_settings(), redis_url) as server, httpx.AsyncClient(base_url=server.url, timeout=30) as client:
        async with client.stream("GET", "/console/live") as stream:
            lines = stream.aiter_lines()
            assert json.loads([await anext(lines), await anext(lines)][1].removeprefix("data: "))["state"] == "good"
            for number in range(MOST_STREAMS - 1):
                server.streams.enter(f"caller {number}")
            refused = await client.get("/console/live")
            assert (refused.status_code, server.streams.number) == (503, MOST_STREAMS)
            server.streams.end()
            assert [line async for line in lines] == [""], "the stream ends at once"
        assert server.streams.number == MOST_STREAMS - 1


async def test_all_streams_together_look_at_redis_once_in_two_seconds(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0
    backlog = type(server.runtime.outbox).backlog

    async def counted(outbox: Any) -> Any:
        nonlocal looks
        looks += 1
        return await backlog(outbox)

    monkeypatch.setattr(type(server.runtime.outbox), "backlog", counted)
    begun = asyncio.get_running_loop().time()

    async def read_one(client: httpx.AsyncClient) -> None:
        async with client.stream("GET", "/console/live") as stream:
            lines = stream.aiter_lines()
            await anext(lines)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(_drain(lines), 3)

    async with httpx.AsyncClient(base_url=server.url, timeout=30) as client:
        await asyncio.gather(*(read_one(client) for _ in range(5)))
    assert 1 <= looks <= 2 + (asyncio.get_running_loop().time() - begun) / 2


async def _drain(lines: Any) -> None:
    async for _ in lines:
        pass


async def test_stream_ends_with_the_login_and_load_is_for_operators(
    new_page: Make, module_settings: Callable[..., Settings], redis_url: str
) -> None:
    settings = module_settings(AUTH_MODE="token", AUTH_ADMIN_TOKEN=ADMIN)
    async with watched(settings, redis_url) as server, httpx.AsyncClient(base_url=server.url, headers={"x-api-key": ADMIN}) as operator:
        assert (await httpx.AsyncClient(base_url=server.url).get("/console/live")).status_code == 204
        limited = await key(operator, users=["ada"])
        page = await logged_in(new_page, server.url, limited["token"])
        await server.has_streams(1)
        await expect(page.locator(".chart")).to_have_count(0)
        await page.get_by_role("button", name="Log out").click()
        await server.has_streams(0)
        page = await logged_in(new_page, server.url, ADMIN)
        await expect(page.locator("[data-live-url]")).to_have_count(1)


async def test_server_with_an_open_stream_stops_in_order(
    new_page: Make, module_settings: Callable[..., Settings], redis_url: str, tmp_path: Path
) -> None:
    # The grace time is longer than `stop` waits.
    given = {"REDIS_URL": redis_url, "KEY_PREFIX": module_settings().redis.key_prefix, "SHUTDOWN_GRACE_SECONDS": "300"}
    async with running(tmp_path, "api", "--port", "0", warm=True, **given, MODEL_PROVIDER="local", EMBEDDING_PROVIDER="local") as process:
        page: Page = await new_page(await process.base_url())
        async with page.expect_request("**/console/live*"):
            await page.goto("/console")
        await expect(page.locator("[data-live-url]")).to_be_visible()
        assert await process.stop() == 0
