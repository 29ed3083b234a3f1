"""Test CORS and the security headers for browsers."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256

import httpx
import pytest

from agent_memory.foundation.core.settings import load_settings
from agent_memory.interfaces.http.app import create_app
from tests.support.api import Recorded

BROWSER = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
ORIGIN = "https://app.example.com"
PREFLIGHT = {"origin": ORIGIN, "access-control-request-method": "PUT", "access-control-request-headers": "x-api-key,content-type"}


@pytest.mark.parametrize("path", ["/v1/health", "/v1/working-memory/s1", "/nowhere", "/metrics", "/openapi.json", "/v1/working-memory/%00"])
async def test_every_response_has_security_headers(api: httpx.AsyncClient, path: str) -> None:
    headers = (await api.get(path)).headers
    assert headers.get_list("content-security-policy") == ["default-src 'none'; frame-ancestors 'none'"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["x-frame-options"] == "DENY"


async def test_500_and_401_responses_have_security_headers(recorded: Recorded) -> None:
    recorded.answers["working.get"] = RuntimeError("no")
    for settings, status in ((load_settings(), 500), (load_settings(AUTH_MODE="token"), 401)):
        transport = httpx.ASGITransport(create_app(settings, recorded.runtime))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            answer = await client.get("/v1/working-memory/s1")
        assert answer.status_code == status
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]


async def test_docs_page_allows_only_its_own_scripts(api: httpx.AsyncClient) -> None:
    answer = await api.get("/docs")
    (policy,) = answer.headers.get_list("content-security-policy")
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == rules["frame-ancestors"] == rules["base-uri"] == "'none'"
    scripts = re.findall(r"<script>(.*?)</script>", answer.text, re.DOTALL)
    assert scripts
    for script in scripts:
        assert b64encode(sha256(script.encode()).digest()).decode() in rules["script-src"]
    assert rules["script-src"].count("sha256-") == len(scripts)
    assert "unsafe" not in rules["script-src"]
    assert "/openapi.json" in answer.text


@pytest.mark.parametrize("given", [{}, {"AUTH_MODE": "token"}], ids=["open", "with keys"])
async def test_root_redirects_browsers_to_the_console(given: dict[str, str], recorded: Recorded) -> None:
    transport = httpx.ASGITransport(create_app(load_settings(**given), recorded.runtime))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        start = await client.get("/", headers=BROWSER)
        assert (start.status_code, start.headers["location"]) == (303, "/console")
        assert (await client.get("/", headers={"accept": "application/json"})).status_code == 404, "programs find no API here"


@pytest.mark.parametrize("given", [{}, {"AUTH_MODE": "token"}], ids=["open", "with keys"])
async def test_docs_page_loads_only_bundled_files(given: dict[str, str], recorded: Recorded) -> None:
    transport = httpx.ASGITransport(create_app(load_settings(**given), recorded.runtime))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        page = await client.get("/docs")
        addresses = re.findall(r"""(?:src|href|url:?) *[=:]? *["']([^"']+)["']""", page.text)
        assert len(addresses) >= 4
        for address in addresses:
            answer = await client.get(address)
            assert address.startswith("/"), "no address of another host"
            assert (answer.status_code, answer.headers["x-content-type-options"]) == (200, "nosniff"), address
        kinds = {address.rpartition(".")[2]: (await client.get(address)).headers["content-type"] for address in addresses}
        assert {name: kind.partition(";")[0] for name, kind in kinds.items()} == {
            "css": "text/css",
            "js": "text/javascript",
            "png": "image/png",
            "json": "application/json",
        }
        policy = page.headers["content-security-policy"]
    assert "//" not in page.text.replace("<!DOCTYPE html>", ""), "nor in its scripts"
    assert "http" not in policy


async def test_redoc_redirects_to_docs(api: httpx.AsyncClient) -> None:
    answer = await api.get("/redoc")
    assert (answer.status_code, answer.headers["location"]) == (307, "/docs")


async def test_docs_page_uses_the_root_path_prefix(recorded: Recorded) -> None:
    transport = httpx.ASGITransport(create_app(load_settings(), recorded.runtime), root_path="/memory")
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        text = (await client.get("/memory/docs")).text
    assert "/memory/docs/swagger-ui-bundle.js" in text
    assert "/memory/openapi.json" in text


async def test_cors_headers_are_sent_only_to_allowed_origins(api: httpx.AsyncClient, recorded: Recorded) -> None:
    for answer in (await api.options("/v1/working-memory/s1", headers=PREFLIGHT), await api.get("/v1/health", headers={"origin": ORIGIN})):
        assert not [name for name in answer.headers if name.startswith("access-control")]
    settings = load_settings(AUTH_MODE="token", CORS_ALLOWED_ORIGINS=f"https://other.example, {ORIGIN}")
    transport = httpx.ASGITransport(create_app(settings, recorded.runtime))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        asked = await client.options("/v1/working-memory/s1", headers=PREFLIGHT)
        assert (asked.status_code, asked.headers["access-control-allow-origin"]) == (200, ORIGIN)
        assert "access-control-allow-credentials" not in asked.headers
        refused = await client.get("/v1/working-memory/s1", headers={"origin": ORIGIN})
        assert (refused.status_code, refused.headers["access-control-allow-origin"]) == (401, ORIGIN)
        stranger = await client.get("/v1/health", headers={"origin": "https://evil.example"})
        assert "access-control-allow-origin" not in stranger.headers


async def test_root_redirects_browsers_to_docs_without_a_console(recorded: Recorded) -> None:
    transport = httpx.ASGITransport(create_app(load_settings(CONSOLE_ENABLED="false"), recorded.runtime))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        assert (await client.get("/", headers=BROWSER)).headers["location"] == "/docs"
        assert (await client.get("/console", headers=BROWSER)).status_code == 404
