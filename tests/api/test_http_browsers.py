"""What browsers are told: no answer is framed, guessed at or run, and pages of other origins are let in by name only."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256

import httpx
import pytest

from agent_memory.api.app import create_app
from agent_memory.settings import load_settings
from tests.support.api import Recorded

ORIGIN = "https://app.example.com"
PREFLIGHT = {"origin": ORIGIN, "access-control-request-method": "PUT", "access-control-request-headers": "x-api-key,content-type"}


@pytest.mark.parametrize("path", ["/v1/health", "/v1/working-memory/s1", "/nowhere", "/metrics", "/openapi.json", "/v1/working-memory/%00"])
async def test_an_answer_is_data_whatever_its_status(api: httpx.AsyncClient, path: str) -> None:
    headers = (await api.get(path)).headers
    assert headers.get_list("content-security-policy") == ["default-src 'none'; frame-ancestors 'none'"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["x-frame-options"] == "DENY"


async def test_a_crash_and_a_refusal_for_want_of_credentials_are_data_too(recorded: Recorded) -> None:
    recorded.answers["working.get"] = RuntimeError("no")
    for settings, status in ((load_settings(), 500), (load_settings(AUTH_MODE="token"), 401)):
        transport = httpx.ASGITransport(create_app(settings, recorded.runtime))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            answer = await client.get("/v1/working-memory/s1")
        assert answer.status_code == status
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]


@pytest.mark.parametrize("path", ["/docs", "/redoc"])
async def test_a_page_runs_the_scripts_it_is_made_of_and_no_others(api: httpx.AsyncClient, path: str) -> None:
    answer = await api.get(path)
    (policy,) = answer.headers.get_list("content-security-policy")
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == rules["frame-ancestors"] == rules["base-uri"] == "'none'"
    scripts = re.findall(r"<script>(.*?)</script>", answer.text, re.DOTALL)
    for script in scripts:
        assert b64encode(sha256(script.encode()).digest()).decode() in rules["script-src"]
    assert rules["script-src"].count("sha256-") == len(scripts)
    assert "unsafe" not in rules["script-src"]
    for address in re.findall(r'<(?:script|link)[^>]+(?:src|href)="(https://[^/"]+)', answer.text):
        assert address in policy
    assert "/openapi.json" in answer.text


async def test_no_page_of_another_origin_is_let_in_unless_it_is_named(api: httpx.AsyncClient, recorded: Recorded) -> None:
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
