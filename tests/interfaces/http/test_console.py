"""Test the console without a browser: files, translations, actions, and the REST calls of its pages."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from hashlib import sha256
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from agent_memory.features.access import audit
from agent_memory.foundation.core.settings import Settings, load_settings
from agent_memory.interfaces.console import rest
from agent_memory.interfaces.console.actions import ACTIONS
from agent_memory.interfaces.console.assets import ASSETS, asset_path
from agent_memory.interfaces.console.paths import is_console
from agent_memory.interfaces.http.app import create_app
from agent_memory.runtime import open_runtime
from tests.support.api import Recorded
from tests.support.cli import ROOT

CONSOLE = ROOT / "agent_memory" / "interfaces" / "console"
CONSOLE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
BROWSER = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
# A page of the console may make so many calls.
MOST_CALLS = 10
PAGES = (
    "",
    "/people",
    "/people/ada",
    "/people/ada?namespace=chat",
    "/memories",
    "/memories?q=Lisbon",
    "/prompt?q=Lisbon&user=ada",
    "/sessions/s1?user=ada",
    "/forget?id=f1&user=ada",
    "/prompt?q=Lisbon&user=ada&compare=1&b_limit=2",
    "/erase/ada",
    "/erase/ada?namespace=chat",
    "/memories?ended=1&writer=anonymous",
    "/changes",
    "/changes?tab=all",
    "/jobs",
    "/jobs?tab=dead",
    "/keys",
    "/server",
)


def test_vendored_files_match_the_manifest() -> None:
    manifest = json.loads((CONSOLE / "vendored.json").read_text("utf-8"))
    for path, digest in manifest["files"].items():
        assert sha256((ROOT / path).read_bytes()).hexdigest() == digest, f"{path}: run scripts/console/vendor.py"
    script = (ROOT / "scripts" / "console" / "vendor.py").read_text("utf-8")
    for name, package in manifest["packages"].items():
        assert f"{name}@{package['version']}" in script


def test_every_template_text_is_translated() -> None:
    languages = {path.stem: json.loads(path.read_text("utf-8")) for path in (CONSOLE / "words").glob("*.json")}
    texts = "".join(path.read_text("utf-8") for path in (CONSOLE / "templates").rglob("*.html"))
    used = set(re.findall(r"\bt\.([a-z_0-9]+)", texts))
    beginnings = tuple(re.findall(r't\["([a-z]+_)" ~', texts))
    for language, words in languages.items():
        assert used <= words.keys(), language
        assert words.keys() == languages["en"].keys(), language
    assert not set(dir(dict)).intersection(languages["en"]), "a template would find the dictionary's method"
    own = {
        "language",
        "no_page",
        "stale_form",
        "demo_block",
        "demo_block_for",
        "none_chosen",
        "typed_wrong",
        "say_sure",
        "slot_is_taken",
        "no_namespace",
    }
    unused = {word for word in languages["en"].keys() - used - own if not word.startswith(beginnings)}
    assert not unused
    assert {f"done_{name}" for name in ACTIONS} <= languages["en"].keys()


def test_every_action_names_existing_rest_operations() -> None:
    paths: dict[str, Any] = create_app(load_settings()).openapi()["paths"]
    operations = {f"{method.upper()} {path}" for path, methods in paths.items() for method in methods}
    for name, action in ACTIONS.items():
        assert action.twins, name
        assert operations.issuperset(action.twins), name


def test_templates_never_disable_escaping() -> None:
    for path in (CONSOLE / "templates").rglob("*.html"):
        text = path.read_text("utf-8")
        assert "|safe" not in text.replace(" ", ""), path.name
        assert "autoescape" not in text, path.name
        assert not re.search(r"<style|\sstyle=|\son[a-z]+=", text), path.name


@pytest.mark.parametrize("given", [{}, {"AUTH_MODE": "token"}], ids=["open", "with keys"])
async def test_console_pages_load_only_bundled_files(given: dict[str, str], make_settings: Callable[..., Settings], redis_url: str) -> None:
    settings = make_settings(**given)
    async with open_runtime(settings, redis_url) as runtime, served(create_app(settings, runtime)) as client:
        page = await client.get("/console", headers=BROWSER, follow_redirects=True)
        assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
        (policy,) = page.headers.get_list("content-security-policy")
        assert policy == CONSOLE_POLICY
        assert not re.search(r"<style|<script>|\son\w+=|\sstyle=", page.text), "nothing inline"
        addresses = {html.unescape(each) for each in re.findall(r'(?:href|src)="([^"#]+)"', page.text)}
        assert len(addresses) >= 4
        for address in addresses:
            assert (await client.get(address, follow_redirects=True)).status_code == 200, address
        strange = await client.get("/console", headers={**BROWSER, "host": 'localhost"><script>'}, follow_redirects=True)
        assert "<script>" not in strange.text


async def test_static_files_are_cached_until_they_change(api: httpx.AsyncClient) -> None:
    for name in ASSETS:
        file = await api.get(asset_path(name))
        assert (file.status_code, file.headers["cache-control"]) == (200, "public, max-age=31536000, immutable")
        again = await api.get(asset_path(name), headers={"if-none-match": file.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        assert (await api.get(f"/console/static/{name}?v=old")).headers["cache-control"] == "no-cache"
    assert (await api.get("/console/static/..%2fframe.py")).status_code in (404, 422)
    assert ASSETS["inter.woff2"].digest in ASSETS["console.css"].content.decode()


async def test_mcp_of_the_namespace_console_asks_for_credentials(recorded: Recorded) -> None:
    assert not is_console("/console/mcp")
    transport = httpx.ASGITransport(create_app(load_settings(AUTH_MODE="token"), recorded.runtime))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        assert (await client.post("/console/mcp", json={})).status_code == 401
        assert (await client.post("/console/mcp/", json={})).status_code == 401


async def test_console_page_makes_few_rest_calls(
    make_settings: Callable[..., Settings], redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    call = rest.Rest.__call__

    async def counted(self: rest.Rest, method: str, path: str, *arguments: Any, **keywords: Any) -> Any:
        calls.append(f"{method} {path}")
        return await call(self, method, path, *arguments, **keywords)

    monkeypatch.setattr(rest.Rest, "__call__", counted)
    settings = make_settings()
    async with open_runtime(settings, redis_url) as runtime, served(create_app(settings, runtime)) as client:
        memory = {"id": "f1", "text": "Ada lives in Lisbon.", "user_id": "ada", "memory_type": "semantic"}
        await client.post("/v1/long-term-memory/", json={"memories": [memory]})
        await client.post("/v1/working-memory/s1/messages", json={"user_id": "ada", "messages": [{"role": "user", "content": "Hi"}]})
        for page in PAGES:
            calls.clear()
            answer = await client.get(f"/console{page}")
            assert answer.status_code == 200, answer.text
            assert 1 <= len(calls) <= MOST_CALLS, (page, calls)


async def test_console_calls_are_audited_and_rate_limited(
    make_settings: Callable[..., Settings], redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    audited: list[str] = []

    def record(**event: Any) -> None:
        audited.append(event["operation"])

    monkeypatch.setattr(audit, "record", record)
    settings = make_settings(AUDIT_LOG="true", LIMIT_REQUESTS_PER_MINUTE="1", LIMIT_REQUESTS_BURST="3")
    async with open_runtime(settings, redis_url) as runtime, served(create_app(settings, runtime)) as client:
        assert (await client.get("/console/people")).status_code == 200
        assert "POST /v1/long-term-memory/search" in audited
        assert not [operation for operation in audited if operation.startswith("GET /console")]
        assert (await client.get("/console/people/ada")).status_code == 429


def served(app: FastAPI) -> Any:
    """Return a client of the application."""
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost")
