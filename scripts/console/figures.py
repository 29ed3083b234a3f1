"""Measure how fast the console's pages load. Needs Chromium.

Usage: `python scripts/console/figures.py [MEMORIES] [FOLDER]`. The default is 100,000 memories. The
benchmarks' embedding server provides the vectors, so filling the store takes only minutes. The
store is saved in FOLDER for the next run.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import httpx
from playwright.async_api import Browser, async_playwright

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.setup import corpus  # noqa: E402
from benchmarks.setup.preload import preload  # noqa: E402
from benchmarks.setup.stack import running  # noqa: E402
from tests.console.conftest import ARGUMENTS, CHROMIUM  # noqa: E402

USER = corpus.user(7)
PAGES = (
    "",
    "?period=day",
    "/people",
    "/people?q=" + USER[:2],
    f"/people/{USER}",
    "/memories",
    "/memories?offset=5000",
    "/memories?q=lives+in",
    f"/memories?q=lives+in&user={USER}",
    f"/prompt?q=Where+do+I+live%3F&user={USER}&profile=1&blocks=1",
    f"/sessions/s7?user={USER}",
    f"/erase/{USER}",
    "/changes",
    "/changes?tab=all",
    "/jobs",
    "/keys",
    "/server",
)
MOST_MS, MOST_KB, TRIES, SESSIONS = 500, 150, 5, 500
_TIMES = """() => {
    const [page] = performance.getEntriesByType("navigation");
    const paint = performance.getEntriesByName("first-contentful-paint")[0];
    return [page.responseStart - page.requestStart, paint ? paint.startTime : null];
}"""


async def main(memories: int, folder: Path) -> None:
    async with running(folder, workers=1) as stack, httpx.AsyncClient(base_url=stack.apis[0], timeout=60) as api:
        stored = (await api.post("/v1/long-term-memory/search", json={"limit": 1})).json()["total"]
        if stored < memories:
            filled = await preload(stack.redis_url, stack.environment, stored, memories)
            print(f"filled with {memories:,} memories in {filled.seconds:.0f} s", flush=True)
            for number in range(SESSIONS):
                said = [{"role": role, "content": corpus.fact(number, 1)} for role in ("user", "assistant") * 10]
                body = {"user_id": corpus.user(number), "messages": said}
                (await api.post(f"/v1/working-memory/s{number}/messages", json=body)).raise_for_status()
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
            print(f"{'page':64} {'kB':>6} {'requests':>8} {'first byte':>10} {'first paint':>11}  (medians of {TRIES}, ms, nothing cached)")
            for path in PAGES:
                tries = [await _open(browser, stack.apis[0], path) for _ in range(TRIES)]
                weight, requests, first_byte, paint = (median(values) for values in zip(*tries, strict=True))
                over = "  <-- over" if weight > MOST_KB or paint > MOST_MS else ""
                print(f"{path or '/':64} {weight:6.0f} {requests:8.0f} {first_byte:10.0f} {paint:11.0f}{over}", flush=True)
            await browser.close()


async def _open(browser: Browser, url: str, path: str) -> tuple[float, int, float, float]:
    """Return a page's size in KB, request count, and milliseconds to first byte and first paint."""
    context = await browser.new_context(base_url=url, viewport={"width": 1280, "height": 900})
    page = await context.new_page()
    network = await context.new_cdp_session(page)
    sizes: list[float] = []

    def note_size(event: dict[str, Any]) -> None:
        sizes.append(event["encodedDataLength"])

    network.on("Network.loadingFinished", note_size)
    await network.send("Network.enable")
    answer = await page.goto(f"/console{path}")
    assert answer is not None
    assert answer.status == 200, (path, answer.status)
    await page.wait_for_timeout(300)  # charts are drawn after the page loads
    first_byte, paint = await page.evaluate(_TIMES)
    await context.close()
    return sum(sizes) / 1000, len(sizes), first_byte, paint or float("inf")


if __name__ == "__main__":
    with TemporaryDirectory() as temporary:
        asyncio.run(main(int((sys.argv[1:] or ["100000"])[0]), Path((sys.argv[2:] or [temporary])[0])))
