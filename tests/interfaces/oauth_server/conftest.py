"""Provide an OAuth server, a browser, and an app that performs OAuth step by step."""

from __future__ import annotations

import asyncio
import json
import re
from asyncio.subprocess import PIPE
from base64 import urlsafe_b64encode
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from hashlib import sha256
from html import unescape
from pathlib import Path
from secrets import token_urlsafe
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx
import pytest

from agent_memory.foundation.core.settings import Settings, load_settings
from agent_memory.interfaces.http.app import create_app
from agent_memory.runtime import Runtime, open_runtime
from tests.support.api import bound_socket, serving

ADMIN = "the-operator-of-this-server"
CALLBACK = "https://app.example/callback"


@dataclass(frozen=True)
class Site:
    """A server with OAUTH_SERVER enabled, and helpers that call it."""

    url: str
    settings: Settings
    runtime: Runtime
    operator: httpx.AsyncClient

    async def key(self, role: str = "write", **more: Any) -> dict[str, Any]:
        """Create an API key."""
        answer = await self.operator.post("/v1/auth/tokens", json={"role": role, **more})
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def keys(self) -> list[dict[str, Any]]:
        return (await self.operator.get("/v1/auth/tokens")).json()["tokens"]

    def app(self, **more: Any) -> App:
        return App(httpx.AsyncClient(base_url=self.url, timeout=30), **more)

    def browser(self) -> Browser:
        return Browser(httpx.AsyncClient(base_url=self.url, timeout=30))

    async def connected(self, **more: Any) -> tuple[App, dict[str, Any]]:
        """Connect an app with a new API key, and return it with its tokens."""
        app = self.app()
        assert (await app.register()).status_code == 201
        browser = self.browser()
        await browser.log_in((await self.key(**more))["token"])
        return app, (await app.exchange(await browser.allow(app.link()))).json()


@dataclass
class App:
    """An OAuth client. Values in `more` override the valid ones."""

    http: httpx.AsyncClient
    redirect_uri: str = CALLBACK
    client_id: str = ""
    verifier: str = field(default_factory=lambda: token_urlsafe(32))

    async def register(self, **more: Any) -> httpx.Response:
        document = {"client_name": "Example", "redirect_uris": [self.redirect_uri], "token_endpoint_auth_method": "none", **more}
        answer = await self.http.post("/register", json=document)
        if answer.status_code == 201:
            self.client_id = answer.json()["client_id"]
        return answer

    def link(self, **more: str | None) -> str:
        """Return the authorization URL."""
        challenge = urlsafe_b64encode(sha256(self.verifier.encode()).digest()).decode().rstrip("=")
        query = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": self.redirect_uri,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
            "scope": "memory:read memory:write",
            "state": "state-of-the-app",
            **more,
        }
        return str(httpx.URL("/authorize", params={name: value for name, value in query.items() if value is not None}))

    async def exchange(self, code: str, **more: str) -> httpx.Response:
        form = {"grant_type": "authorization_code", "code": code, "client_id": self.client_id}
        form |= {"redirect_uri": self.redirect_uri, "code_verifier": self.verifier, **more}
        return await self.http.post("/token", data=form)

    async def refresh(self, refresh_token: str, **more: str) -> httpx.Response:
        form = {"grant_type": "refresh_token", "refresh_token": refresh_token, "client_id": self.client_id, **more}
        return await self.http.post("/token", data=form)

    async def may_read(self, access_token: str) -> bool:
        answer = await self.http.post(
            "/v1/long-term-memory/search", json={"text": "x"}, headers={"authorization": f"Bearer {access_token}"}
        )
        assert answer.status_code in (200, 401), answer.text
        return answer.status_code == 200


@dataclass
class Browser:
    """A browser that omits SameSite=Strict cookies on cross-site requests and follows refreshes."""

    http: httpx.AsyncClient

    async def log_in(self, key: str) -> None:
        page = await self.http.get("/console/login")
        answer = await self.http.post("/console/login", data={"token": key, "csrf": _field(page.text, "csrf")})
        assert answer.status_code == 303, answer.text

    async def open(self, link: str) -> httpx.Response:
        """Follow a link from another site, and return the final page."""
        async with httpx.AsyncClient(base_url=self.http.base_url) as without_cookies:
            bounce = await without_cookies.get(link)
        assert bounce.status_code == 200
        assert "set-cookie" not in bounce.headers
        return await self.http.get(_refresh(bounce.text), follow_redirects=True)

    async def answer(self, page: httpx.Response, **form: str) -> httpx.Response:
        """Submit the form on the consent page."""
        return await self.http.post(str(page.url), data={"csrf": _field(page.text, "csrf"), "role": "write", "answer": "allow", **form})

    async def allow(self, link: str, **form: str) -> str:
        """Consent and return the authorization code."""
        answered = await self.answer(await self.open(link), **form)
        assert answered.status_code == 200, answered.text
        return sent_back(answered)["code"]


def sent_back(page: httpx.Response) -> dict[str, str]:
    """Return the query parameters of a page's redirect to the app."""
    return dict(parse_qsl(urlsplit(back_to(page)).query))


def back_to(page: httpx.Response) -> str:
    """Return the app URL that the page redirects to."""
    return _refresh(page.text)


async def play_login(site: Site, *command: str | Path) -> Any:
    """Run a program that logs in with access limited to user "bo", and return its JSON output.

    The program prints a link for the browser, and reads the redirect URL from stdin.
    """
    browser = site.browser()
    await browser.log_in((await site.key())["token"])
    process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, stderr=PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    link = (await process.stdout.readline()).decode().strip()
    if link.startswith("http"):
        process.stdin.write(f"{back_to(await browser.answer(await browser.open(link), user='bo'))}\n".encode())
    printed, problems = await process.communicate()
    assert process.returncode == 0, problems.decode()[-4000:]
    return json.loads(printed)


def _refresh(page: str) -> str:
    found = re.search(r'http-equiv="refresh" content="0;url=([^"]+)"', page)
    assert found is not None, page
    return unescape(found[1])


def _field(page: str, name: str) -> str:
    found = re.search(rf'name="{name}" value="([^"]*)"', page)
    assert found is not None, page
    return unescape(found[1])


@pytest.fixture(scope="module")
async def site(redis_url: str, request: pytest.FixtureRequest) -> AsyncGenerator[Site]:
    listener = bound_socket()
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    more: dict[str, Any] = getattr(request.module, "MORE_SETTINGS", {})
    settings = load_settings(
        KEY_PREFIX=f"oauth-{request.module.__name__.rpartition('.')[2]}",
        MODEL_PROVIDER="local",
        EMBEDDING_PROVIDER="local",
        AUTH_MODE="token",
        AUTH_ADMIN_TOKEN=ADMIN,
        OAUTH_SERVER=True,
        PUBLIC_URL=url,
        **more,
    )
    async with (
        open_runtime(settings, redis_url) as runtime,
        serving(create_app(settings, runtime), listener=listener),
        httpx.AsyncClient(base_url=url, headers={"x-api-key": ADMIN}) as operator,
    ):
        yield Site(url, settings, runtime, operator)


@pytest.fixture(autouse=True)
async def fresh_limits(site: Site) -> None:
    """Reset the rate limits before each test."""
    redis = site.runtime.client
    async for key in redis.scan_iter(f"{site.runtime.keys.root}rate:*"):
        await redis.delete(key)


MakeSettings = Callable[..., Settings]
