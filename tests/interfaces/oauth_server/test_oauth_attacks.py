"""Attack the authorization server, and check that it reveals nothing."""

from __future__ import annotations

import asyncio
import re
from functools import partial
from time import time
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from mcp.server.auth.handlers import token as sdk_token_handler

from agent_memory.features.access.token_store import Token, TokenStore
from agent_memory.features.access.tokens import TokenService
from agent_memory.foundation.core.errors import StartupError
from agent_memory.interfaces.http.app import create_app
from agent_memory.interfaces.oauth_server.connections import CODE_SECONDS, Connections
from tests.interfaces.oauth_server.conftest import ADMIN, CALLBACK, App, Browser, MakeSettings, Site, sent_back
from tests.support.waiting import wait_until


async def is_refused(app: App, token: str) -> bool:
    return not await app.may_read(token)


EVIL_REDIRECTS = (
    "javascript:alert(1)",
    "JavaScript://app.example/%0aalert(1)",
    "data:text/html,<script>alert(1)</script>",
    "vbscript:x",
    "file:///etc/passwd",
    "blob:https://app.example/1",
    "about:blank",
    "view-source:https://app.example/",
    "http://app.example/callback",
    "http://127.0.0.1.evil.example/callback",
    "http://localhost@evil.example/callback",
    "https://user:secret@app.example/callback",
    "https://app.example/callback#fragment",
    "//app.example/callback",
    "",
)


async def person(site: Site, **more: Any) -> Browser:
    browser = site.browser()
    await browser.log_in((await site.key(**more))["token"])
    return browser


async def registered(site: Site, **more: Any) -> App:
    app = site.app(**more)
    answer = await app.register()
    assert answer.status_code == 201, answer.text
    return app


@pytest.mark.parametrize("uri", EVIL_REDIRECTS)
async def test_unsafe_redirect_addresses_are_not_registered(site: Site, uri: str) -> None:
    answer = await site.app().register(redirect_uris=["https://app.example/", uri])
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"] in ("invalid_redirect_uri", "invalid_client_metadata")


@pytest.mark.parametrize(
    "uri",
    [
        "https://evil.example/callback",
        f"{CALLBACK}/../evil",
        f"{CALLBACK}?more=1",
        f"{CALLBACK}.evil.example",
        "https://app.example:8443/callback",
        "https://APP.example.evil/callback",
        "http://app.example/callback",
        "javascript:alert(1)",
    ],
)
async def test_unregistered_redirect_addresses_get_no_code_and_no_redirect(site: Site, uri: str) -> None:
    app, browser = await registered(site), await person(site)
    page = await browser.open(app.link(redirect_uri=uri))
    assert page.status_code == 422
    _stays_here(site, page)


@pytest.mark.parametrize(
    "wrong",
    [
        {"code_challenge_method": "plain"},
        {"code_challenge_method": "none"},
        {"code_challenge": None},
        {"code_challenge": "short"},
        {"code_challenge": "=" * 43},
        {"response_type": "token"},
        {"response_type": "code id_token"},
        {"client_id": "unknown"},
        {"client_id": None},
        {"redirect_uri": None},
        {"scope": "memory:admin"},
        {"resource": "https://other.example/mcp"},
        {"resource": "PUBLIC.evil.example/mcp"},
        {"resource": "PUBLIC/mcp#x"},
        {"resource": "PUBLIC/a/b/mcp"},
    ],
    ids=str,
)
async def test_invalid_authorization_requests_show_an_error_page_without_a_redirect(site: Site, wrong: dict[str, str | None]) -> None:
    """An error never redirects the browser, because anyone can register an address."""
    app, browser = await registered(site), await person(site)
    changed = {name: value and value.replace("PUBLIC", site.url) for name, value in wrong.items()}
    page = await browser.open(app.link(**changed))
    assert page.status_code == 422, page.text
    _stays_here(site, page)


def _stays_here(site: Site, page: httpx.Response) -> None:
    assert page.url.host == urlsplit(site.url).hostname
    assert "http-equiv" not in page.text
    assert 'name="answer"' not in page.text


async def test_code_requires_its_verifier_client_and_address(site: Site) -> None:
    app, other, browser = await registered(site), await registered(site), await person(site)
    code = await browser.allow(app.link())
    for wrong in ({"code_verifier": other.verifier}, {"code_verifier": ""}, {"redirect_uri": "https://evil.example/"}):
        assert (await app.exchange(code, **wrong)).status_code == 400
    form = {"grant_type": "authorization_code", "code": code, "client_id": app.client_id, "redirect_uri": CALLBACK}
    assert (await app.http.post("/token", data=form)).status_code == 400
    assert (await other.exchange(code, code_verifier=app.verifier)).json()["error"] == "invalid_grant"
    assert (await app.exchange(code, client_id="unknown")).status_code == 401
    assert (await app.exchange(code, resource="https://other.example/mcp")).json()["error"] == "invalid_target"
    doubled = b"grant_type=authorization_code&client_id=a&client_id=b&code=x"
    answer = await app.http.post("/token", content=doubled, headers={"content-type": "application/x-www-form-urlencoded"})
    assert answer.json()["error"] == "invalid_request"
    assert (await app.refresh(code)).json()["error"] == "invalid_grant"
    assert (await app.exchange(code, resource=f"{site.url}/mcp")).status_code == 200


async def test_code_used_twice_revokes_the_connection(site: Site) -> None:
    app, browser = await registered(site), await person(site)
    code = await browser.allow(app.link())
    tokens = (await app.exchange(code)).json()
    assert await app.may_read(tokens["access_token"])
    assert (await app.exchange(code)).json()["error"] == "invalid_grant"
    assert not await app.may_read(tokens["access_token"])
    assert (await app.refresh(tokens["refresh_token"])).json()["error"] == "invalid_grant"


async def test_code_used_concurrently_gives_at_most_one_revoked_token(site: Site) -> None:
    app, browser = await registered(site), await person(site)
    code = await browser.allow(app.link())
    answers = await asyncio.gather(*(app.exchange(code) for _ in range(8)))
    given = [answer.json() for answer in answers if answer.status_code == 200]
    assert len(given) <= 1
    assert not any([await app.may_read(tokens["access_token"]) for tokens in given])


async def test_code_used_again_before_the_first_use_ends_revokes_the_connection(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    app, browser = await registered(site), await person(site)
    connections = site.runtime[Connections]
    grant = await connections.find_grant("code", await browser.allow(app.link()), app.client_id)
    assert grant is not None
    key = await site.runtime[TokenStore].find_token(grant.key_id)

    async def read_before(*_: object) -> Token | None:
        return key

    monkeypatch.setattr(connections, "_live_key", read_before)
    first, second = await connections.renew(grant), await connections.renew(grant)
    assert first is not None
    assert second is None
    assert not await app.may_read(first[0])


async def test_code_expires_by_the_clock_of_redis(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    app, browser = await registered(site), await person(site)
    monkeypatch.setattr(sdk_token_handler, "time", SimpleNamespace(time=lambda: time() + 3600))
    assert (await app.exchange(await browser.allow(app.link()))).status_code == 200
    code = await browser.allow(app.link())
    grant = await site.runtime[Connections].find_grant("code", code, app.client_id)
    assert grant is not None
    key = await site.runtime[TokenStore].find_token(grant.key_id)
    assert key is not None
    life = await site.runtime.client.pttl(site.runtime.keys.token(key.digest))
    assert 0 < life <= CODE_SECONDS * 1000
    await site.runtime.client.delete(site.runtime.keys.token(key.digest))
    assert (await app.exchange(code)).json()["error"] == "invalid_grant"


async def test_refresh_token_used_twice_revokes_the_connection(site: Site) -> None:
    app, first = await site.connected()
    second = (await app.refresh(first["refresh_token"])).json()
    assert await app.may_read(second["access_token"])
    assert await app.may_read(first["access_token"])  # requests in progress, for a minute
    third = (await app.refresh(second["refresh_token"])).json()
    await wait_until(partial(is_refused, app, first["access_token"]), "the former access token is refused")
    assert (await app.refresh(first["refresh_token"])).json()["error"] == "invalid_grant"
    for tokens in (second, third):
        assert not await app.may_read(tokens["access_token"])
        assert (await app.refresh(tokens["refresh_token"])).json()["error"] == "invalid_grant"


async def test_refresh_tokens_are_bound_to_their_client_and_scope(site: Site) -> None:
    app, tokens = await site.connected()
    other = await registered(site)
    assert (await other.refresh(tokens["refresh_token"])).json()["error"] == "invalid_grant"
    assert (await app.refresh(tokens["refresh_token"], scope="memory:admin")).json()["error"] == "invalid_scope"
    assert (await app.refresh(tokens["refresh_token"], resource="https://other.example/")).json()["error"] == "invalid_target"
    assert (await app.exchange(tokens["refresh_token"])).json()["error"] == "invalid_grant"
    await other.http.post("/revoke", data={"token": tokens["refresh_token"], "client_id": other.client_id})
    assert (await app.refresh(tokens["refresh_token"])).status_code == 200


@pytest.mark.parametrize("kind", ["access_token", "refresh_token"])
async def test_app_can_revoke_its_own_connection(site: Site, kind: str) -> None:
    app, tokens = await site.connected()
    assert (await app.http.post("/revoke", data={"token": tokens[kind], "client_id": app.client_id})).status_code == 200
    assert not await app.may_read(tokens["access_token"])
    assert (await app.refresh(tokens["refresh_token"])).json()["error"] == "invalid_grant"


async def test_responses_name_the_issuer_and_the_state(site: Site) -> None:
    """This prevents authorization server mix-up attacks (RFC 9207)."""
    app, browser = await registered(site), await person(site)
    metadata = (await app.http.get("/.well-known/oauth-authorization-server")).json()
    assert metadata["authorization_response_iss_parameter_supported"] is True
    for answer in ("allow", "refuse"):
        got = sent_back(await browser.answer(await browser.open(app.link()), answer=answer))
        assert (got["iss"], got["state"]) == (metadata["issuer"], "state-of-the-app")
        assert ("code" in got, got.get("error")) == ((True, None) if answer == "allow" else (False, "access_denied"))


async def test_consent_requires_a_form_of_this_browser(site: Site) -> None:
    app, victim, attacker = await registered(site), await person(site), await person(site)
    before = len(await site.keys())
    page = await victim.open(app.link())
    token = re.search(r'name="csrf" value="([^"]*)"', (await attacker.open(app.link())).text)
    assert token is not None
    for csrf in (token[1], "", "x" * 64):
        answer = await victim.http.post(str(page.url), data={"csrf": csrf, "answer": "allow", "role": "write"})
        assert answer.status_code == 403
    async with httpx.AsyncClient(base_url=site.url) as stranger:
        answer = await stranger.post(str(page.url), data={"answer": "allow"})
        assert answer.status_code == 303
        assert urlsplit(answer.headers["location"]).path == "/console/login"
    assert (await victim.http.get(str(page.url) + "&answer=allow&role=write")).text.count('name="answer"') == 2
    assert len(await site.keys()) == before
    assert page.headers["x-frame-options"] == "DENY"
    assert "frame-ancestors 'none'" in page.headers["content-security-policy"]


async def test_names_of_apps_are_shown_as_text(site: Site) -> None:
    app, browser = site.app(), await person(site)
    await app.register(client_name='<script>alert(1)</script>"\u202e\u200b\r\nClaude' + "x" * 500)
    page = await browser.open(app.link(state='"><script>alert(2)</script>'))
    answered = await browser.answer(page)
    for text in (page.text, answered.text):
        assert "<script>alert" not in text
        assert not set("\u202e\u200b") & set(text)
    assert "app.example" in page.text
    assert sent_back(answered)["state"] == '"><script>alert(2)</script>'
    assert "x" * 100 not in page.text


async def test_connection_has_at_most_the_rights_of_its_user(site: Site) -> None:
    app, reader = await registered(site), await person(site, role="read", users=["ada", "bo"], namespaces=["home"])
    page = await reader.open(app.link())
    assert (await reader.answer(page, user="eve")).status_code == 403
    assert (await reader.answer(page, user="")).status_code == 403
    tokens = (await app.exchange(sent_back(await reader.answer(page, user="ada", role="admin"))["code"])).json()
    assert tokens["scope"] == "memory:read"
    (key,) = [key for key in await site.keys() if key["users"] == ["ada"]]
    assert (key["role"], key["namespaces"]) == ("read", ["home"])
    stored = {"memories": [{"id": "x", "text": "x", "user_id": "ada", "namespace": "home"}]}
    headers = {"authorization": f"Bearer {tokens['access_token']}"}
    assert (await app.http.post("/v1/long-term-memory/", json=stored, headers=headers)).status_code == 403


async def test_connected_apps_can_neither_administer_keys_nor_connect_apps(site: Site) -> None:
    app, operator = await registered(site), site.browser()
    await operator.log_in(ADMIN)
    tokens = (await app.exchange(await operator.allow(app.link(scope="memory:read memory:write memory:admin"), role="admin"))).json()
    headers = {"authorization": f"Bearer {tokens['access_token']}"}
    assert (await app.http.get("/v1/auth/tokens", headers=headers)).status_code == 403
    pretending = site.browser()
    await pretending.log_in(tokens["access_token"])
    assert (await pretending.answer(await pretending.open(app.link()))).status_code == 403


@pytest.mark.parametrize("how", ["revoke", "rotate", "erase"])
async def test_connection_ends_with_the_key_that_approved_it(site: Site, how: str) -> None:
    app, browser = await registered(site), site.browser()
    own = await site.key(users=["leaver"])
    await browser.log_in(own["token"])
    tokens = (await app.exchange(await browser.allow(app.link(), user="leaver"))).json()
    assert await app.may_read(tokens["access_token"])
    if how == "revoke":
        await site.operator.delete(f"/v1/auth/tokens/{own['id']}")
    elif how == "rotate":
        await site.operator.post(f"/v1/auth/tokens/{own['id']}/rotate", json={"grace_seconds": 0})
    else:
        await site.runtime[TokenService].forget_user("default", "leaver")
    assert not await app.may_read(tokens["access_token"])
    assert (await app.refresh(tokens["refresh_token"])).json()["error"] == "invalid_grant"


async def test_codes_and_tokens_are_not_stored_in_plain_text(site: Site) -> None:
    app, browser = await registered(site), await person(site)
    code = await browser.allow(app.link())
    tokens = (await app.exchange(code)).json()
    redis, stored = site.runtime.client, b""
    async for key in redis.scan_iter("*"):
        kind = await redis.type(key)
        stored += key + (await redis.dump(key) if kind in (b"hash", b"string") else b"")
    for secret in (code, tokens["access_token"], tokens["refresh_token"]):
        assert secret.encode() not in stored


async def test_flood_of_registrations_is_refused_and_registrations_expire(site: Site) -> None:
    app = site.app()
    answers = [await app.register() for _ in range(40)]
    assert {answer.status_code for answer in answers} == {201, 429}
    assert "retry-after" in answers[-1].headers
    large = await app.http.post("/register", json={"redirect_uris": [CALLBACK], "client_name": "x" * 20_000})
    assert large.status_code in (413, 429)
    redis = site.runtime.client
    lives = [await redis.ttl(key) async for key in redis.scan_iter(f"{site.runtime.keys.root}app:*")]
    assert 0 < min(lives) <= 3600


async def test_unknown_tokens_and_clients_get_the_standard_errors(site: Site) -> None:
    app, _ = await site.connected()
    assert (await app.exchange("unknown")).json()["error"] == "invalid_grant"
    assert (await app.refresh("unknown")).json()["error"] == "invalid_grant"
    assert (await app.http.post("/token", data={"grant_type": "password", "client_id": app.client_id})).status_code == 400
    assert (await app.http.post("/token", data={})).status_code == 401
    assert (await app.http.post("/revoke", data={"token": "unknown", "client_id": app.client_id})).status_code == 200
    assert await site.runtime[Connections].find_client("unknown") is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"AUTH_MODE": "disabled"},
        {"PUBLIC_URL": None},
        {"PUBLIC_URL": "http://memory.example"},
        {"PUBLIC_URL": "https://memory.example/path"},
        {"CONSOLE_ENABLED": False},
    ],
    ids=str,
)
def test_server_refuses_to_start_if_settings_of_the_oauth_server_are_missing(make_settings: MakeSettings, wrong: dict[str, Any]) -> None:
    given = {"AUTH_MODE": "token", "OAUTH_SERVER": True, "PUBLIC_URL": "https://memory.example", **wrong}
    with pytest.raises(StartupError, match="OAUTH_SERVER needs"):
        create_app(make_settings(**given))


async def test_oauth_endpoints_do_not_exist_without_the_setting(make_settings: MakeSettings) -> None:
    transport = httpx.ASGITransport(create_app(make_settings(AUTH_MODE="token", AUTH_ADMIN_TOKEN=ADMIN)))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        for path in ("/.well-known/oauth-authorization-server", "/authorize", "/token", "/register", "/revoke"):
            assert (await client.post(path)).status_code == 401
