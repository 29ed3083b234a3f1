"""Check all pages at three widths and in both themes for overflow and accessibility problems."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.async_api import Page

from tests.console.sample import USER, load_sample
from tests.console.test_pages import DEMO, demo_page

AXE = (Path(__file__).parent / "axe.min.js").read_text("utf-8")
PAGES = (
    "",
    "?period=day",
    "/people",
    "/people/nobody",
    f"/people/{DEMO}",
    f"/people/{DEMO}?edit={DEMO}-fact-1",
    f"/people/{DEMO}?kind=said",
    "/memories",
    "/memories?q=peanuts",
    "/memories?q=peanuts&topic=nothing",
    "/prompt",
    f"/prompt?q=What+can+I+cook%3F&user={DEMO}&session={DEMO}&profile=1&blocks=1",
    f"/sessions/{DEMO}?user={DEMO}",
    f"/forget?id={DEMO}-fact-1&user={DEMO}",
    f"/people/{USER}",
    f"/prompt?q=What+can+I+cook%3F&user={USER}&compare=1&b_limit=2&b_profile=1&b_tokens=500",
    f"/memories?ended=1&user={USER}",
    f"/people/{USER}?namespace=elsewhere",
    f"/erase/{USER}",
    "/changes",
    "/changes?tab=all",
    f"/history/{USER}-fact-1",
    "/jobs",
    "/jobs?tab=dead",
    "/keys",
    "/server",
    "/nowhere",
)


@pytest.mark.parametrize(("width", "theme"), [(390, "dark"), (1024, "light"), (1600, "dark")])
async def test_pages_fit_the_screen_and_are_accessible(
    width: int, theme: str, new_page: Callable[..., Any], open_url: str, api: httpx.AsyncClient
) -> None:
    options = {"viewport": {"width": width, "height": 900}, "color_scheme": theme, "reduced_motion": "reduce"}
    page: Page = await demo_page(new_page, open_url, api, "/console", **options)
    await load_sample(api)
    for path in (*PAGES, await forgotten_page(api)):
        await page.goto(f"/console{path}")
        assert await page.evaluate("document.documentElement.scrollWidth") <= width, path
        await page.evaluate(AXE)
        found: Any = await page.evaluate("axe.run()")
        serious = [violation for violation in found["violations"] if violation["impact"] in ("serious", "critical")]
        assert not serious, (path, [(each["id"], [node["html"] for node in each["nodes"]]) for each in serious])


async def forgotten_page(api: httpx.AsyncClient) -> str:
    await api.post("/v1/long-term-memory/", json={"memories": [{"id": "gone", "text": "Gone with the wind", "user_id": "gone"}]})
    receipt = (await api.post("/v1/memory/forget", json={"ids": ["gone"]})).json()["receipt_id"]
    return f"/forgotten/{receipt}?back=/console/people"


async def test_login_page_is_accessible_in_both_themes(new_page: Callable[..., Any], guarded_url: str) -> None:
    for theme in ("light", "dark"):
        page: Page = await new_page(guarded_url, color_scheme=theme)
        await page.goto("/console")
        await page.evaluate(AXE)
        found: Any = await page.evaluate("axe.run()")
        assert not [each["id"] for each in found["violations"] if each["impact"] in ("serious", "critical")]


async def test_keyboard_reaches_the_content_and_every_action(new_page: Callable[..., Any], open_url: str, api: httpx.AsyncClient) -> None:
    page = await demo_page(new_page, open_url, api, f"/console/people/{DEMO}")
    await page.keyboard.press("Tab")
    assert await page.evaluate("document.activeElement.className") == "skip"
    names: set[str] = set()
    for _ in range(60):
        await page.keyboard.press("Tab")
        names.add(await page.evaluate("document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent.trim()"))
    assert {"Overview", "Where this comes from", "Edit", "Forget", "Pin"} <= names


def _note_size(sizes: list[float], event: dict[str, Any]) -> None:
    sizes.append(event["encodedDataLength"])


async def test_pages_transfer_less_than_150_kilobytes(new_page: Callable[..., Any], open_url: str, api: httpx.AsyncClient) -> None:
    page = await demo_page(new_page, open_url, api, "/console")
    await load_sample(api)
    for path in PAGES:
        fresh: Page = await new_page(open_url)
        network = await fresh.context.new_cdp_session(fresh)
        sizes: list[float] = []
        network.on("Network.loadingFinished", partial(_note_size, sizes))
        await network.send("Network.enable")
        await fresh.goto(f"/console{path}", wait_until="networkidle")
        print(f"{path or '/'}: {sum(sizes) / 1000:.0f} kB in {len(sizes)} requests")
        assert sum(sizes) < 150_000, path
        await fresh.context.close()
    assert page
