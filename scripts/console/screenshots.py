"""Take the README's screenshots. Needs Debian's Chromium (`scripts/console/chromium.sh`)."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx
from playwright.async_api import async_playwright

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from agent_memory.foundation.core.settings import load_settings  # noqa: E402
from agent_memory.foundation.embedded.server import embedded_redis  # noqa: E402
from tests.console.conftest import ARGUMENTS, CHROMIUM  # noqa: E402
from tests.console.sample import USER, load_sample  # noqa: E402
from tests.support.stack import stack  # noqa: E402

IMAGES = ROOT / "docs" / "images"
PICTURES = {
    "console-person": (f"/people/{USER}", 1080),
    "console-prompt": (f"/prompt?q=What+can+I+cook+for+Lia%3F&user={USER}&pinned=1&limit=5", 1080),
}


async def main() -> None:
    IMAGES.mkdir(exist_ok=True)
    settings = load_settings(MODEL_PROVIDER="local", EMBEDDING_PROVIDER="local")
    with TemporaryDirectory() as folder:
        async with embedded_redis(Path(folder)) as redis, stack(settings, redis.url) as url, async_playwright() as playwright:
            async with httpx.AsyncClient(base_url=url, timeout=60) as api:
                await load_sample(api)
            browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
            for name, (path, height) in PICTURES.items():
                page = await browser.new_page(base_url=url, viewport={"width": 1200, "height": height}, color_scheme="light")
                await page.goto(f"/console{path}")
                await page.evaluate("document.fonts.ready")
                await page.screenshot(path=IMAGES / f"{name}.png")
                print(f"{name}.png: {(IMAGES / f'{name}.png').stat().st_size / 1000:.0f} kB")
            await browser.close()


if __name__ == "__main__":
    asyncio.run(main())
