"""Test that a server without credentials resists DNS rebinding and CSRF."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from agent_memory.foundation.core.settings import Settings
from agent_memory.interfaces.http.app import create_app
from tests.support.api import Recorded

MakeSettings = Callable[..., Settings]
OURS = ["127.0.0.1", "127.0.0.1:8000", "localhost:9", "LOCALHOST", "localhost.", "[::1]:8000", "127.1.2.3"]
THEIRS = [
    "evil.example",
    "evil.example:8000",
    "localhost.evil.example",
    "127.0.0.1.evil.example",
    "",
    "[::1",
    "10.0.0.1",
    "\xe9",
    "0.0.0.0",
]


async def _ask(settings: Settings, host: str, method: str = "GET", path: str = "/v1/working-memory/s1", **headers: str) -> httpx.Response:
    transport = httpx.ASGITransport(create_app(settings, Recorded().runtime))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        sent: dict[str, Any] = {"host": host.encode("latin-1"), **headers}
        return await client.request(method, path, headers=sent)


@pytest.mark.parametrize("host", OURS)
async def test_local_host_names_are_accepted(make_settings: MakeSettings, host: str) -> None:
    assert (await _ask(make_settings(), host)).status_code == 200


@pytest.mark.parametrize("host", THEIRS)
@pytest.mark.parametrize("path", ["/v1/working-memory/s1", "/v1/health", "/metrics", "/mcp", "/openapi.json"])
async def test_unknown_host_is_refused_on_every_path(make_settings: MakeSettings, host: str, path: str) -> None:
    answer = await _ask(make_settings(), host, path=path)
    assert (answer.status_code, answer.json()["code"]) == (421, "misdirected")
    assert "ALLOWED_HOSTS" in answer.json()["detail"]
    assert not host or host not in answer.text


@pytest.mark.parametrize(
    ("given", "good", "bad"),
    [
        ({"ALLOWED_HOSTS": "memory.example, Other.Example"}, ["memory.example:80", "other.example", "localhost"], ["evil.example"]),
        ({"ALLOWED_HOSTS": "*"}, ["evil.example"], []),
        ({"HOST": "0.0.0.0", "AUTH_DISABLED_ON_NETWORK": True}, ["10.0.0.1", "memory.example"], []),
        ({"HOST": "0.0.0.0", "AUTH_DISABLED_ON_NETWORK": True, "ALLOWED_HOSTS": "memory.example"}, ["memory.example"], ["10.0.0.1"]),
    ],
)
async def test_allowed_hosts_follow_the_settings(
    make_settings: MakeSettings, given: dict[str, Any], good: list[str], bad: list[str]
) -> None:
    for hosts, status in ((good, 200), (bad, 421)):
        for host in hosts:
            assert (await _ask(make_settings(**given), host)).status_code == status, host


async def test_any_host_is_accepted_if_credentials_are_required(make_settings: MakeSettings) -> None:
    assert (await _ask(make_settings(AUTH_MODE="token"), "memory.example")).status_code == 401
    named = make_settings(AUTH_MODE="token", ALLOWED_HOSTS="memory.example")
    assert (await _ask(named, "memory.example")).status_code == 401
    assert (await _ask(named, "evil.example")).status_code == 421


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_writes_from_a_foreign_origin_are_refused(make_settings: MakeSettings, method: str) -> None:
    settings = make_settings(CORS_ALLOWED_ORIGINS="https://app.example")
    for origin in ("https://evil.example", "null", "https://app.example.evil.example", "file://"):
        answer = await _ask(settings, "localhost", method, origin=origin)
        assert (answer.status_code, answer.json()["code"]) == (403, "forbidden"), origin
    for origin in ("https://app.example", "http://localhost"):
        assert (await _ask(settings, "localhost", method, origin=origin)).status_code not in (403, 421), origin
    assert (await _ask(settings, "localhost", origin="https://evil.example")).status_code == 200


# The request's address, its host name, and the origin of the page.
OWN = [
    ("localhost:8000", "http://localhost:8000"),
    ("LOCALHOST:8000", "http://localhost:8000"),
    ("localhost", "http://localhost:80"),
    ("localhost:80", "http://localhost"),
    ("127.0.0.1:8000", "http://127.0.0.1:8000"),
    ("[::1]:8000", "http://[::1]:8000"),
]
FOREIGN = [
    ("localhost:8000", "http://localhost:3000"),
    ("localhost:8000", "http://localhost"),
    ("localhost:8000", "https://localhost:8000"),
    ("localhost:8000", "http://127.0.0.1:8000"),
    ("127.0.0.1:8000", "http://127.0.0.2:8000"),
    ("127.0.0.1:8000", "http://[::1]:8000"),
    ("localhost:8000", "http://app.localhost:8000"),
    ("localhost:8000", "http://localhost:8000.evil.example"),
    ("localhost:8000", "http://localhost:8000@evil.example"),
    ("localhost:8000", "http://localhost:x"),
    ("localhost:8000", "http://localhost:99999"),
    ("localhost:8000", "ftp://localhost:8000"),
    ("localhost:8000", "null"),
    ("localhost:8000", ""),
]
# Changes without a body, which browsers send without a preflight request.
BARE = [
    "/v1/long-term-memory/compact",
    "/v1/working-memory/s1/flush",
    "/v1/changes/c1/undo",
    "/v1/changes/c1/approve",
    "/v1/users/ada/export",
    "/mcp",
]


@pytest.mark.parametrize(("host", "origin"), OWN)
async def test_writes_from_the_own_origin_are_accepted(make_settings: MakeSettings, host: str, origin: str) -> None:
    assert (await _ask(make_settings(), host, "PUT", origin=origin)).status_code not in (403, 421)


@pytest.mark.parametrize(("host", "origin"), FOREIGN)
async def test_different_scheme_host_or_port_is_a_foreign_origin(make_settings: MakeSettings, host: str, origin: str) -> None:
    answer = await _ask(make_settings(), host, "PUT", origin=origin)
    assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
    assert "CORS_ALLOWED_ORIGINS" in answer.json()["detail"]


@pytest.mark.parametrize("path", BARE)
async def test_bodyless_writes_from_another_port_are_refused(make_settings: MakeSettings, path: str) -> None:
    assert (await _ask(make_settings(), "localhost:8000", "POST", path, origin="http://localhost:3000")).status_code == 403


@pytest.mark.parametrize(("site", "refused"), [("cross-site", True), ("same-site", True), ("same-origin", False), ("none", False)])
async def test_sec_fetch_site_decides_if_origin_is_missing(make_settings: MakeSettings, site: str, refused: bool) -> None:
    answer = await _ask(make_settings(), "localhost:8000", "POST", "/v1/users/ada/export", **{"sec-fetch-site": site})
    assert (answer.status_code == 403) is refused


async def test_same_origin_is_recognized_behind_a_tls_proxy(make_settings: MakeSettings) -> None:
    settings = make_settings(ALLOWED_HOSTS="memory.example")
    own = {"origin": "https://memory.example", "sec-fetch-site": "same-origin"}
    assert (await _ask(settings, "memory.example", "PUT", **own)).status_code not in (403, 421)
    for other in ("https://memory.example:8443", "https://evil.example"):
        assert (await _ask(settings, "memory.example", "PUT", **{**own, "origin": other})).status_code == 403


@pytest.mark.parametrize("given", [{"HOST": "0.0.0.0", "AUTH_DISABLED_ON_NETWORK": True}, {"ALLOWED_HOSTS": "*"}])
async def test_foreign_origin_is_refused_even_if_any_host_is_allowed(make_settings: MakeSettings, given: dict[str, Any]) -> None:
    settings = make_settings(**given)
    assert (await _ask(settings, "10.0.0.1:8000", "PUT", origin="http://10.0.0.1:3000")).status_code == 403
    assert (await _ask(settings, "10.0.0.1:8000", "PUT", origin="http://10.0.0.1:8000")).status_code not in (403, 421)
    anybody = make_settings(**given, CORS_ALLOWED_ORIGINS="*")
    assert (await _ask(anybody, "10.0.0.1:8000", "PUT", origin="http://10.0.0.1:3000")).status_code not in (403, 421)


async def test_requests_without_browser_headers_are_served(make_settings: MakeSettings) -> None:
    assert (await _ask(make_settings(), "localhost:8000", "PUT")).status_code not in (403, 421)
