"""Test pages without scripts, on slow networks, after logout, and after the server dies.

The pages report the failure and lose nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import httpx
from playwright.async_api import Page, Route, expect
from redis import Redis

from agent_memory.foundation.core.settings import Settings
from agent_memory.interfaces.http.app import create_app
from agent_memory.runtime import open_runtime
from tests.console.conftest import ADMIN
from tests.console.sample import POISON, SESSION, USER, load_sample
from tests.support.api import serving

Make = Callable[..., Any]


async def test_every_page_reads_without_scripts(new_page: Make, open_url: str, api: httpx.AsyncClient) -> None:
    await load_sample(api)
    page: Page = await new_page(open_url, java_script_enabled=False)
    prompt = f"/prompt?q=peanuts&user={USER}"
    shown = {
        "": "Mara",
        "/people": USER,
        f"/people/{USER}": "Lia is allergic to peanuts",
        "/memories?q=peanuts": "Lia is allergic to peanuts",
        prompt: "Long term memories",
        f"{prompt}&compare=1&b_limit=1": "only here",
        f"/sessions/{SESSION}?user={USER}": "Welcome to Porto",
        "/changes": POISON,
        "/changes?tab=all": "Mara lives in Porto.",
        "/jobs": "Profiles and timelines",
        "/keys": "A new key",
        "/server": "What a profile shows",
        f"/erase/{USER}": "You cannot undo it",
    }
    for path, text in shown.items():
        await page.goto(f"/console{path}")
        await expect(page.locator("main")).to_contain_text(text)
    await page.goto(f"/console{prompt}")
    await page.get_by_role("button", name="Compare two settings").click()
    await expect(page.locator(".halves > div")).to_have_count(2)
    await page.goto(f"/console/memories?user={USER}&topic=leisure")
    await page.get_by_label("Choose", exact=True).first.check()
    await page.locator("#chosen").get_by_role("button", name="Forget").click()
    await expect(page.locator("del")).not_to_have_count(0)


async def test_slow_answer_shows_progress_and_moves_nothing(new_page: Make, open_url: str, api: httpx.AsyncClient) -> None:
    await load_sample(api)
    page: Page = await new_page(open_url)
    await page.goto("/console/people")
    go_on = asyncio.Event()

    async def hold(route: Route) -> None:
        await go_on.wait()
        await route.continue_()

    await page.route(f"**/console/people/{USER}*", hold)
    before = await page.locator("main").bounding_box()
    await page.get_by_role("link", name=USER).click()
    await expect(page.locator("body")).to_have_class("htmx-request")
    assert await page.locator("main").bounding_box() == before
    go_on.set()
    await expect(page.get_by_role("heading", level=1)).to_contain_text(USER)
    await expect(page.locator("body")).not_to_have_class("htmx-request")


async def test_ended_session_leads_to_the_login_and_back(new_page: Make, guarded_url: str, redis_url: str) -> None:
    page: Page = await new_page(guarded_url)
    await page.goto("/console")
    await page.get_by_label("API key").fill(ADMIN)
    await page.get_by_role("button", name="Log in").click()
    with Redis.from_url(redis_url) as client:
        for name in client.scan_iter("*browser:*"):
            client.delete(name)
    await page.get_by_role("link", name="Memories").click()
    await page.get_by_label("API key").fill(ADMIN)
    await page.get_by_role("button", name="Log in").click()
    await expect(page).to_have_url(f"{guarded_url}/console/memories")
    await expect(page.get_by_role("heading", level=1)).to_have_text("Memories")


async def test_form_sent_after_the_session_ended_changes_nothing(new_page: Make, guarded_url: str, redis_url: str) -> None:
    page: Page = await new_page(guarded_url)
    await page.goto("/console/server")
    await page.get_by_label("API key").fill(ADMIN)
    await page.get_by_role("button", name="Log in").click()
    await page.get_by_label("What to remember, and what to leave out").fill("Nothing.")
    with Redis.from_url(redis_url) as client:
        for name in client.scan_iter("*browser:*"):
            client.delete(name)
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_label("API key")).to_be_visible()
    async with httpx.AsyncClient(base_url=guarded_url, headers={"x-api-key": ADMIN}) as client:
        assert not (await client.get("/v1/extraction-rules")).json().get("instructions")


async def test_answer_of_a_stopping_server_does_not_replace_the_page(new_page: Make, open_url: str) -> None:
    page: Page = await new_page(open_url)
    await page.goto("/console/people")
    stopping = {"detail": "the process is stopping: send the request again", "code": "stopping"}
    await page.route("**/console/memories", lambda route: route.fulfill(status=503, json=stopping))
    await page.get_by_role("link", name="Memories").click()
    await expect(page.get_by_role("alert")).to_contain_text("does not answer")
    await expect(page.get_by_role("heading", level=1)).to_have_text("People")


async def test_action_shows_an_alert_and_keeps_the_page_if_the_server_is_down(
    new_page: Make, module_settings: Callable[..., Settings], redis_url: str
) -> None:
    settings = module_settings(KEY_PREFIX="dies")
    async with open_runtime(settings, redis_url) as runtime:
        async with serving(create_app(settings, runtime)) as url:
            page: Page = await new_page(url, expected="Failed to fetch")
            await page.goto("/console/people")
        await page.get_by_role("link", name="Memories").click()
        await expect(page.get_by_role("alert")).to_contain_text("does not answer")
        await expect(page.get_by_role("heading", level=1)).to_have_text("People")
