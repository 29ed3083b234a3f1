"""Test attacks on the console's login, such as forged responses, replays, and foreign tokens."""

from __future__ import annotations

import io
import logging
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from redis.asyncio import Redis

from agent_memory.features.access import login_provider as login_module
from agent_memory.foundation.core.errors import StartupError
from agent_memory.foundation.core.settings import Settings
from agent_memory.interfaces.http.app import create_app
from agent_memory.runtime import open_runtime
from tests.support.login_provider import AUDIENCE, CLIENT, LoginProvider, login_provider

MakeSettings = Callable[..., Settings]
HOST = "http://127.0.0.1:8000"


@pytest.fixture
async def provider() -> AsyncGenerator[LoginProvider]:
    async with login_provider(public_url=HOST) as provider:
        yield provider


@asynccontextmanager
async def console(settings: Settings, redis_url: str) -> AsyncGenerator[Callable[[], httpx.AsyncClient]]:
    """Yield a function that opens a new browser."""
    async with open_runtime(settings, redis_url) as runtime:
        transport = httpx.ASGITransport(create_app(settings, runtime))
        yield lambda: httpx.AsyncClient(transport=transport, base_url=HOST)


@pytest.fixture
async def browsers(provider: LoginProvider, make_settings: MakeSettings, redis_url: str) -> AsyncGenerator[Callable[[], httpx.AsyncClient]]:
    async with console(make_settings(**provider.settings), redis_url) as open_browser:
        yield open_browser


async def answer_of(provider: LoginProvider, browser: httpx.AsyncClient, next_page: str = "/console/people") -> dict[str, str]:
    """Start a login, and return the parameters of the provider's redirect back to the console."""
    started = await browser.get("/console/login/start", params={"next": next_page})
    assert started.status_code == 303, started.text
    address = urlsplit(started.headers["location"])
    asked = {name: values[0] for name, values in parse_qs(address.query).items()}
    redirect = urlsplit(provider.authorize(asked).headers["location"])
    assert redirect._replace(query="").geturl() == f"{HOST}/console/login/callback"
    return {name: values[0] for name, values in parse_qs(redirect.query).items()}


async def finish(browser: httpx.AsyncClient, answer: dict[str, str]) -> httpx.Response:
    return await browser.get("/console/login/callback", params=answer)


async def is_logged_in(browser: httpx.AsyncClient) -> bool:
    return (await browser.get("/console/people")).status_code == 200


async def test_login_sends_pkce_scopes_and_audience_to_the_provider(
    provider: LoginProvider, browsers: Callable[[], httpx.AsyncClient]
) -> None:
    browser = browsers()
    answer = await answer_of(provider, browser)
    (asked,) = provider.logins.values()
    assert (asked["client_id"], asked["audience"], asked["code_challenge_method"]) == (CLIENT, AUDIENCE, "S256")
    assert set(asked["scope"].split()) == {"openid", "memory:read", "memory:write", "memory:admin"}
    secrets = [asked[name] for name in ("state", "nonce", "code_challenge")]
    assert len({*secrets}) == 3
    assert all(len(secret) >= 43 for secret in secrets)
    finished = await finish(browser, answer)
    assert finished.status_code == 200
    assert 'content="0;url=/console/people"' in finished.text
    assert await is_logged_in(browser)
    assert provider.redeemed[0]["client_id"] == CLIENT
    assert "agent_memory_login" not in browser.cookies


async def test_wrong_missing_or_foreign_state_is_refused_before_the_provider_is_asked(
    provider: LoginProvider, browsers: Callable[[], httpx.AsyncClient]
) -> None:
    browser, attacker = browsers(), browsers()
    answer = await answer_of(provider, browser)
    stolen = await answer_of(provider, attacker)
    forged = [
        {**answer, "state": "x" * 43},
        {**answer, "state": ""},
        {"code": answer["code"]},
        {**answer, "state": "ÿ\ud7ff"},
        stolen,  # an attacker's answer in a victim's browser would log the victim into the attacker's account
        {"error": "access_denied", "error_description": "<script>"},
    ]
    for each in forged:
        refused = await finish(browser, each)
        assert refused.status_code == 403, each
        assert "login is out of date" in refused.text
    for cookie in ("", "x", "...", "a.b.c", f"{answer['state']}"):
        refused = await browsers().get("/console/login/callback", params=answer, headers={"cookie": f"agent_memory_login={cookie}"})
        assert refused.status_code == 403, cookie
    assert provider.redeemed == []
    assert not await is_logged_in(browser)
    assert (await finish(browser, answer)).status_code == 200


async def test_answer_is_used_once(provider: LoginProvider, browsers: Callable[[], httpx.AsyncClient]) -> None:
    browser = browsers()
    answer = await answer_of(provider, browser)
    cookie = browser.cookies["agent_memory_login"]
    assert (await finish(browser, answer)).status_code == 200
    thief = browsers()
    provider.logins["another"] = provider.logins[answer["code"]]
    for code in (answer["code"], "another"):
        replayed = await thief.get(
            "/console/login/callback", params={**answer, "code": code}, headers={"cookie": f"agent_memory_login={cookie}"}
        )
        assert (replayed.status_code, "used before" in replayed.text) == (403, True)
        assert not await is_logged_in(thief)


async def test_stolen_code_is_useless_in_another_login(provider: LoginProvider, browsers: Callable[[], httpx.AsyncClient]) -> None:
    victim, attacker = browsers(), browsers()
    code = (await answer_of(provider, victim))["code"]
    own = await answer_of(provider, attacker)
    refused = await finish(attacker, {**own, "code": code})
    assert refused.status_code == 401
    assert len(provider.redeemed) == 1, "the provider compares the verifier"
    assert not await is_logged_in(attacker)


@pytest.mark.parametrize(
    "next_page",
    ["https://evil.example/", "//evil.example/console", "/console.evil.example", "/v1/health", "javascript:alert(1)", "\\\\evil.example"],
)
async def test_login_never_leads_to_other_sites(next_page: str, provider: LoginProvider, browsers: Callable[[], httpx.AsyncClient]) -> None:
    browser = browsers()
    finished = await finish(browser, await answer_of(provider, browser, next_page))
    assert 'content="0;url=/console"' in finished.text
    # The same for a cookie that another party wrote.
    browser = browsers()
    answer = await answer_of(provider, browser)
    values = [*browser.cookies["agent_memory_login"].split(".")[:3], urlencode({"": next_page})[1:]]
    headers = {"cookie": f"agent_memory_login={'.'.join(values)}"}
    finished = await browsers().get("/console/login/callback", params=answer, headers=headers)
    assert 'content="0;url=/console"' in finished.text


async def test_login_target_is_escaped_and_too_long_ones_lead_to_the_start_page(
    provider: LoginProvider, browsers: Callable[[], httpx.AsyncClient]
) -> None:
    browser = browsers()
    finished = await finish(browser, await answer_of(provider, browser, '/console/people?q="><script>é;url=//evil.example'))
    assert "<script>" not in finished.text
    assert 'content="0;url=/console/people?q=&#34;' in finished.text
    browser = browsers()
    finished = await finish(browser, await answer_of(provider, browser, "/console/people?q=" + "é" * 3000))
    assert 'content="0;url=/console"' in finished.text


FOREIGN: dict[str, dict[str, Any]] = {
    "identity of another issuer": {"identity": {"iss": "https://other.example"}},
    "identity for another client": {"identity": {"aud": "another"}},
    "identity for the API": {"identity": {"aud": AUDIENCE}},
    "identity for two clients, authorized for the other": {"identity": {"aud": [CLIENT, "another"], "azp": "another"}},
    "identity of another login": {"identity": {"nonce": "x" * 43}},
    "identity without nonce": {"identity": {"nonce": None}},
    "identity expired": {"identity": {"exp": 1_700_000_000}},
    "access of another issuer": {"access": {"iss": "https://other.example"}},
    "access to another service": {"access": {"aud": "another"}},
    "access to the console only": {"access": {"aud": CLIENT}},
    "access expired": {"access": {"exp": 1_700_000_000}},
    "signed with another key": {"key": rsa.generate_private_key(65537, 2048)},
    "answer of another issuer": {"answer": {"iss": "https://other.example"}},
    "refusal": {"answer": {"code": "", "error": "access_denied"}},
    "no code": {"answer": {"code": ""}},
    "code made up": {"answer": {"code": "made-up"}},
}


@pytest.mark.parametrize("changes", FOREIGN.values(), ids=FOREIGN)
async def test_answers_and_tokens_of_others_are_refused(
    changes: dict[str, Any], provider: LoginProvider, browsers: Callable[[], httpx.AsyncClient]
) -> None:
    for name, value in changes.items():
        setattr(provider, name, value)
    browser = browsers()
    refused = await finish(browser, await answer_of(provider, browser))
    assert refused.status_code == 401, refused.text
    assert not await is_logged_in(browser)


async def test_login_of_a_user_without_a_role_is_refused_and_names_the_scope(
    provider: LoginProvider, browsers: Callable[[], httpx.AsyncClient]
) -> None:
    provider.access = {"scope": "openid"}
    browser = browsers()
    refused = await finish(browser, await answer_of(provider, browser))
    assert (refused.status_code, "memory:admin" in refused.text) == (403, True)
    assert not await is_logged_in(browser)


async def test_session_has_the_rights_of_its_token_and_ends_with_it(
    provider: LoginProvider,
    browsers: Callable[[], httpx.AsyncClient],
    make_settings: MakeSettings,
    redis_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    provider.access = {"scope": "memory:read", "exp": int(time.time()) + 200, "email": "ana@example.com"}
    browser = browsers()
    finished = await finish(browser, await answer_of(provider, browser))
    assert finished.status_code == 200
    assert (await browser.get("/console/people/bo")).status_code == 403, "the claim `sub` limits the session to its user"
    assert "default · read" in (await browser.get("/console/people")).text
    async with Redis.from_url(redis_url) as client:
        logins = {key: await client.get(key) async for key in client.scan_iter(f"{make_settings().redis.key_prefix}:*browser:*")}
        ((key, claims),) = [each for each in logins.items() if each[1]]
        assert await client.expiretime(key) == provider.access["exp"]
        assert b"example.com" not in claims, "claims without a use are not stored"
    monkeypatch.setattr(login_module, "time", lambda: float(provider.access["exp"]))
    ended = await browser.get("/console/people")
    assert (ended.status_code, ended.headers["location"]) == (303, "/console/login?next=%2Fconsole%2Fpeople")


async def test_session_ends_if_new_settings_remove_its_role_or_login(
    provider: LoginProvider, make_settings: MakeSettings, redis_url: str
) -> None:
    async with console(make_settings(**provider.settings), redis_url) as open_browser:
        browser = open_browser()
        await finish(browser, await answer_of(provider, browser))
        cookies = browser.cookies
    for changes in ({"OAUTH2_ROLES": {"other": "read"}}, {"OAUTH2_CLIENT_ID": None}, {"AUTH_MODE": "token", "AUTH_ADMIN_TOKEN": "x" * 16}):
        async with console(make_settings(**(provider.settings | changes)), redis_url) as open_browser:
            browser = open_browser()
            browser.cookies = cookies
            assert not await is_logged_in(browser), changes


@pytest.mark.parametrize("status", [500, 302])
async def test_failing_provider_gives_503(status: int, provider: LoginProvider, browsers: Callable[[], httpx.AsyncClient]) -> None:
    browser = browsers()
    answer = await answer_of(provider, browser)
    provider.token_status = status
    failed = await finish(browser, answer)
    assert (failed.status_code, "the login provider does not answer" in failed.text) == (503, True)


async def test_missing_or_invalid_discovery_gives_503(provider: LoginProvider, make_settings: MakeSettings, redis_url: str) -> None:
    away = provider.settings | {"OAUTH2_ISSUER_URL": "http://127.0.0.1:9"}
    async with console(make_settings(**away), redis_url) as open_browser:
        failed = await open_browser().get("/console/login/start")
        assert (failed.status_code, "the login provider does not answer" in failed.text) == (503, True)
    for discovery in ({"issuer": "https://other.example"}, {"token_endpoint": None}, {"jwks_uri": "file:///etc/passwd"}):
        provider.discovery = discovery
        async with console(make_settings(**provider.settings), redis_url) as open_browser:
            assert (await open_browser().get("/console/login/start")).status_code == 503, discovery
            token = provider.sign({"aud": AUDIENCE, "scope": "memory:read"})
            refused = await open_browser().get("/v1/working-memory/", headers={"authorization": f"Bearer {token}"})
            assert refused.status_code == 503, discovery


async def test_confidential_console_sends_its_secret_only_in_a_header(make_settings: MakeSettings, redis_url: str) -> None:
    async with login_provider(public_url=HOST, secret="a secret: with%signs") as provider:
        async with console(make_settings(**provider.settings), redis_url) as open_browser:
            browser = open_browser()
            assert (await finish(browser, await answer_of(provider, browser))).status_code == 200
        assert "client_secret" not in provider.redeemed[0]
        async with console(make_settings(**(provider.settings | {"OAUTH2_CLIENT_SECRET": "wrong"})), redis_url) as open_browser:
            browser = open_browser()
            assert (await finish(browser, await answer_of(provider, browser))).status_code == 401


async def test_callback_is_below_public_url_for_any_host_header(
    provider: LoginProvider, make_settings: MakeSettings, redis_url: str
) -> None:
    for url in ("https://memory.example/", "https://example.com/memory"):
        async with console(make_settings(**(provider.settings | {"PUBLIC_URL": url})), redis_url) as open_browser:
            started = await open_browser().get("/console/login/start", headers={"host": "evil.example", "x-forwarded-host": "evil.example"})
            query = parse_qs(urlsplit(started.headers["location"]).query)
            assert query["redirect_uri"] == [f"{url.rstrip('/')}/console/login/callback"]
            (cookie,) = [each for each in started.headers.get_list("set-cookie") if each.startswith("agent_memory_login=")]
            assert {"HttpOnly", "Secure", "SameSite=lax", "Path=/console/login", "Max-Age=600"} <= {*cookie.split("; ")}
    with pytest.raises(StartupError, match="PUBLIC_URL"):
        async with console(make_settings(**(provider.settings | {"PUBLIC_URL": None})), redis_url):
            pass


async def test_without_a_client_id_there_is_no_login_at_the_provider(
    provider: LoginProvider, make_settings: MakeSettings, redis_url: str
) -> None:
    for changes in ({"OAUTH2_CLIENT_ID": None}, {"AUTH_MODE": "token"}, {"AUTH_MODE": "disabled"}):
        async with console(make_settings(**(provider.settings | changes)), redis_url) as open_browser:
            for path in ("start", "callback?code=a&state=b"):
                assert (await open_browser().get(f"/console/login/{path}")).status_code == 404, changes


async def test_browsers_log_in_with_a_key_or_at_the_provider(provider: LoginProvider, make_settings: MakeSettings, redis_url: str) -> None:
    for mode, by_key in (("oauth2", False), ("both", True)):
        admin = "the-operator-of-this-server"
        settings = make_settings(**(provider.settings | {"AUTH_MODE": mode, "AUTH_ADMIN_TOKEN": admin}))
        async with console(settings, redis_url) as open_browser:
            browser = open_browser()
            page = await browser.get("/console/login")
            assert "/console/login/start" in page.text
            assert ('name="token"' in page.text) is by_key
            assert (await browser.get("/console/login/start")).status_code == 303


async def test_logs_contain_no_secrets_of_a_login(
    provider: LoginProvider,
    browsers: Callable[[], httpx.AsyncClient],
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    written = io.StringIO()
    for name, value in {"stream": written, "line": "{method} {path}\n", "level": logging.DEBUG}.items():
        monkeypatch.setattr(f"agent_memory.foundation.core.logs._AccessLog.{name}", value)
    secrets: list[str] = []
    with caplog.at_level(logging.DEBUG):
        for status in (200, 400, 500):
            provider.token_status = status
            browser = browsers()
            answer = await answer_of(provider, browser)
            secrets += [answer["code"], *browser.cookies["agent_memory_login"].split(".")[:3]]
            await finish(browser, answer)
            secrets.append(browser.cookies["agent_memory_console"])
    secrets += provider.tokens
    output = capsys.readouterr()
    fields = "\n".join(str(vars(entry)) for entry in caplog.records)
    text = f"{caplog.text}\n{fields}\n{written.getvalue()}{output.out}{output.err}"
    assert "/console/login/callback" in written.getvalue()
    # The client of this test logs the addresses that it opens.
    lines = [line for line in text.splitlines() if f"{HOST}/console" not in line]
    assert not [(secret, line) for secret in secrets for line in lines if secret in line]
