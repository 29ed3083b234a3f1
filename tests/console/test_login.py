"""Test logging in through an identity provider on another site."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from typing import Any

import pytest
from playwright.async_api import Page, expect
from redis import Redis

from agent_memory.foundation.core.settings import Settings
from agent_memory.interfaces.http.app import create_app
from agent_memory.runtime import open_runtime
from tests.support.api import bound_socket, serving
from tests.support.login_provider import LoginProvider, login_provider


@pytest.fixture
async def provider() -> AsyncGenerator[LoginProvider]:
    async with login_provider("localhost") as provider:
        yield provider


@pytest.mark.parametrize("language", ["en-US", "zh-CN"])
async def test_login_at_the_provider_returns_to_the_page_and_logout_ends_the_session(
    language: str, new_page: Callable[..., Any], provider: LoginProvider, module_settings: Callable[..., Settings], redis_url: str
) -> None:
    listener = bound_socket()
    provider.public_url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    settings = module_settings(**provider.settings)
    async with open_runtime(settings, redis_url) as runtime, serving(create_app(settings, runtime), listener=listener) as url:
        page: Page = await new_page(url, locale=language)
        await page.goto("/console/people?q=a b")
        expected = {"en-US": "Log in with your account", "zh-CN": "使用您的账户登录"}[language]
        await expect(page.get_by_role("textbox")).to_have_count(0)
        await page.get_by_role("link", name=expected).click()
        await expect(page).to_have_url(f"{url}/console/people?q=a+b")
        await expect(page.locator(".who")).to_have_text("default · admin")
        cookies = await page.context.cookies(f"{url}/console/login")
        assert [(c.get("name"), c.get("httpOnly"), c.get("sameSite")) for c in cookies] == [("agent_memory_console", True, "Strict")]
        with Redis.from_url(redis_url) as client:
            stored = b"".join(key + (client.get(key) or b"") for key in client.scan_iter(f"{settings.redis.key_prefix}:*browser:*"))
        assert b"memory:admin" in stored
        assert not [secret for secret in (*provider.tokens, cookies[0].get("value", "")) if secret.encode() in stored]
        # The session remains for pages that are opened from the address bar, and after an action.
        await page.goto("/console/keys")
        await expect(page.locator(".who")).to_be_visible()
        await page.locator("form[action='/console/logout'] button").click()
        await expect(page.get_by_role("link", name=expected)).to_be_visible()
        await page.context.add_cookies([{"name": "agent_memory_console", "value": cookies[0].get("value", ""), "url": f"{url}/console"}])
        await page.goto("/console/keys")
        await expect(page.get_by_role("link", name=expected)).to_be_visible()
