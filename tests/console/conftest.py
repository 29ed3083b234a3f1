"""Provide a real Chromium browser and the server it opens. The tests fail without a browser."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from typing import Any

import httpx
import pytest
from playwright.async_api import Browser, Page, async_playwright, expect
from ulid import ULID

from agent_memory.foundation.core.settings import Settings, load_settings
from agent_memory.interfaces.http.app import create_app
from agent_memory.runtime import open_runtime
from tests.support.api import serving
from tests.support.stack import stack

CHROMIUM = "/usr/bin/chromium"
ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent.name == "console":
            item.add_marker("browser")


expect.set_options(timeout=30_000)


@pytest.fixture(scope="session")
async def browser() -> AsyncGenerator[Browser]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        await browser.close()


@pytest.fixture
async def new_page(browser: Browser) -> AsyncGenerator[Callable[..., Any]]:
    """Create pages that fail the test after script errors, dialogs or policy violations."""
    contexts: list[Any] = []
    problems: list[str] = []

    async def make(url: str, *, expected: str | None = None, **options: Any) -> Page:
        """Open a page. If `expected` is set, the browser must log an error that contains it."""
        context = await browser.new_context(base_url=url, **options)
        context.set_default_timeout(30_000)
        contexts.append(context)
        page = await context.new_page()
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("dialog", lambda dialog: problems.append(f"dialog: {dialog.message}"))
        page.on(
            "console",
            lambda message: (
                problems.append(message.text) if message.type == "error" and (expected is None or expected not in message.text) else None
            ),
        )
        return page

    yield make
    for context in contexts:
        await context.close()
    # Expected error responses must be named, too.
    assert not [problem for problem in problems if "Failed to load resource" not in problem]


@pytest.fixture(scope="module")
def module_settings() -> Callable[..., Settings]:
    """Return a function that creates settings with the same KEY_PREFIX for all tests in a file."""
    prefix = f"t{str(ULID()).lower()}"

    def make(**given: str) -> Settings:
        return load_settings(**{"KEY_PREFIX": prefix, "MODEL_PROVIDER": "local", "EMBEDDING_PROVIDER": "local", **given})

    return make


@pytest.fixture(scope="module")
async def open_url(module_settings: Callable[..., Settings], redis_url: str) -> AsyncGenerator[str]:
    """Start a server with a worker and without authentication."""
    async with stack(module_settings(), redis_url) as url:
        yield url


@pytest.fixture(scope="module")
async def api(open_url: str) -> AsyncGenerator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=open_url, timeout=30) as client:
        yield client


@pytest.fixture(scope="module")
async def guarded_url(module_settings: Callable[..., Settings], redis_url: str) -> AsyncGenerator[str]:
    """Start a server that requires API keys, without a worker."""
    settings = module_settings(AUTH_MODE="token", AUTH_ADMIN_TOKEN=ADMIN)
    async with open_runtime(settings, redis_url) as runtime, serving(create_app(settings, runtime)) as url:
        yield url


ADMIN = "the-operators-own-key-of-these-tests"
