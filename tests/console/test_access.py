"""Test that a browser session has its API key's access and ends when the key does."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from typing import Any

import httpx
import pytest
from playwright.async_api import Page, expect
from redis import Redis

from tests.console.conftest import ADMIN

Make = Callable[..., Any]
SECRETS = {("here", "ada"): "the secret of ada", ("here", "ben"): "the secret of ben", ("there", "cat"): "the secret of cat"}
RECEIPTS: dict[str, str] = {}
"""For each user, the receipt of a request to forget."""


@pytest.fixture(scope="module")
async def operator(guarded_url: str) -> AsyncGenerator[httpx.AsyncClient]:
    """Provide an operator's client for a server where two tenants have data for three users."""
    async with httpx.AsyncClient(base_url=guarded_url, headers={"x-api-key": ADMIN}, timeout=30) as client:
        for (tenant, user), text in SECRETS.items():
            headers = {"x-api-key": (await key(client, role="write", tenant=tenant))["token"]}
            memory = {"id": f"m-{user}", "text": text, "user_id": user, "namespace": f"of-{user}", "memory_type": "semantic"}
            said = {"user_id": user, "namespace": f"of-{user}", "messages": [{"role": "user", "content": text}]}
            block = {"user_id": user, "namespace": f"of-{user}"}
            for answer in (
                await client.post("/v1/long-term-memory/", json={"memories": [memory]}, headers=headers),
                await client.post(f"/v1/working-memory/s-{user}/messages", json=said, headers=headers),
                await client.put("/v1/blocks/notes", params=block, json={"value": text}, headers=headers),
            ):
                assert answer.status_code == 200, answer.text
            forgotten = {**memory, "id": f"gone-{user}", "text": f"{text}, forgotten"}
            await client.post("/v1/long-term-memory/", json={"memories": [forgotten]}, headers=headers)
            answer = await client.post("/v1/memory/forget", json={"ids": [f"gone-{user}"]}, headers=headers)
            RECEIPTS[user] = answer.json()["receipt_id"]
        yield client


async def key(operator: httpx.AsyncClient, **rights: Any) -> dict[str, Any]:
    answer = await operator.post("/v1/auth/tokens", json={"description": "a test", "role": "write", "tenant": "here", **rights})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def logged_in(new_page: Make, url: str, token: str, path: str = "/console") -> Page:
    page: Page = await new_page(url)
    await page.goto(path)
    await page.get_by_label("API key").fill(token)
    await page.get_by_role("button", name="Log in").click()
    await expect(page.get_by_role("navigation", name="Sections")).to_be_visible()
    return page


async def test_login_returns_to_the_page_and_logout_ends_the_session(
    new_page: Make, guarded_url: str, operator: httpx.AsyncClient, redis_url: str
) -> None:
    token = (await key(operator))["token"]
    page: Page = await new_page(guarded_url)
    await page.goto("/console/people?q=a")
    await page.get_by_label("API key").fill("am_wrong")
    await page.get_by_role("button", name="Log in").click()
    await expect(page.get_by_role("alert")).to_contain_text("unknown API key")
    await page.get_by_label("API key").fill(token)
    await page.get_by_role("button", name="Log in").click()
    await expect(page).to_have_url(f"{guarded_url}/console/people?q=a")
    (cookie,) = await page.context.cookies(f"{guarded_url}/console")
    assert (cookie.get("httpOnly"), cookie.get("sameSite"), cookie.get("path")) == (True, "Strict", "/console")
    name, value = cookie.get("name", ""), cookie.get("value", "")
    assert len(value) > 32
    with Redis.from_url(redis_url) as client:
        stored = [str(client.get(name)) for name in client.scan_iter("*browser:*")]
    assert stored
    assert not any(secret in each for each in stored for secret in (token, value))
    await page.get_by_role("button", name="Log out").click()
    await expect(page.get_by_label("API key")).to_be_visible()
    await page.context.add_cookies([{"name": name, "value": value, "url": f"{guarded_url}/console"}])
    await page.goto("/console")
    await expect(page.get_by_label("API key")).to_be_visible()


async def test_revoked_key_ends_its_sessions(new_page: Make, guarded_url: str, operator: httpx.AsyncClient) -> None:
    created = await key(operator)
    page = await logged_in(new_page, guarded_url, created["token"])
    assert (await operator.delete(f"/v1/auth/tokens/{created['id']}")).status_code == 200
    await page.goto("/console/people")
    await expect(page.get_by_label("API key")).to_be_visible()


async def test_login_never_redirects_to_other_sites(new_page: Make, guarded_url: str, operator: httpx.AsyncClient) -> None:
    token = (await key(operator))["token"]
    for strange in ("https://evil.example/", "//evil.example/console", "/console.evil.example", "/v1/health"):
        page = await logged_in(new_page, guarded_url, token, f"/console/login?next={strange}")
        await expect(page).to_have_url(f"{guarded_url}/console")


@pytest.mark.parametrize(
    "rights",
    [
        {"users": ["ada"]},
        {"namespaces": ["of-ada"]},
        {"users": ["ada"], "namespaces": ["of-ada"], "role": "read"},
        {"agents": ["coach"]},
        {"tenant": "there"},
    ],
    ids=["user", "namespace", "user and namespace, read", "agent", "another tenant"],
)
async def test_limited_key_sees_no_data_of_others(
    rights: dict[str, Any], new_page: Make, guarded_url: str, operator: httpx.AsyncClient
) -> None:
    token = (await key(operator, **rights))["token"]
    page = await logged_in(new_page, guarded_url, token)
    own = {"users": "ada", "namespaces": "ada", "tenant": "cat"}.get(next(name for name in rights if name != "role"), "")
    others = [(user, text) for (_, user), text in SECRETS.items() if user != own]
    paths = ["", "/people", "/people?q=a", "/memories", "/memories?q=secret", "/prompt?q=secret"]
    paths += ["/changes", "/changes?tab=all", "/jobs", "/jobs?tab=dead", "/keys", "/server", "/prompt?q=secret&compare=1"]
    for _, user in SECRETS:
        place = f"namespace=of-{user}"
        paths += [f"/people/{user}?{place}", f"/people/{user}", f"/memories?user={user}", f"/memories?q=secret&user={user}"]
        paths += [f"/sessions/s-{user}?user={user}&{place}", f"/prompt?q=secret&user={user}&{place}&session=s-{user}&blocks=1"]
        paths += [f"/export/{user}?{place}", f"/export/{user}", f"/erase/{user}?{place}", f"/changes?tab=all&user={user}&{place}"]
        paths += [f"/forgotten/{RECEIPTS[user]}", f"/history/m-{user}", f"/export/{user}?format=text"]
        paths += [f"/forget?id=m-{user}&user={user}&{place}", f"/memories?kind=semantic&{place}"]
    if "agents" in rights:
        # Every agent has access to sessions without an agent, in REST too.
        paths = [path for path in paths if not any(part in path for part in ("/sessions/", "session=", "/export/"))]
    seen = ""
    for path in paths:
        answer = await page.context.request.get(f"{guarded_url}/console{path}")
        assert answer.status in (200, 403, 404), (path, answer.status, await answer.text())
        text = await answer.text()
        assert not [secret for _, secret in others if secret in text], path
        seen += text
    if own:
        assert f"the secret of {own}" in seen
        assert (f"the secret of {own}, forgotten" in seen) == (rights.get("role") != "read")
    if rights.get("role") == "read":
        await page.goto("/console/people/ada?namespace=of-ada")
        await expect(page.get_by_label("Forget")).to_have_count(0)
        assert "the secret of ada" in await page.content()


async def test_form_without_valid_csrf_token_is_refused(new_page: Make, guarded_url: str, operator: httpx.AsyncClient) -> None:
    token = (await key(operator))["token"]
    page = await logged_in(new_page, guarded_url, token)
    other = await logged_in(new_page, guarded_url, token)
    foreign = await other.locator("input[name=csrf]").first.get_attribute("value")
    for csrf in ("", "0" * 64, foreign):
        for action in ("forget", "pin", "edit-memory", "load-demo", "edit-block", "erase", "create-key", "save-rules"):
            form: dict[str, str | float | bool] = {"id": "m-ada", "user": "ada", "text": "taken over", "csrf": str(csrf)}
            answer = await page.context.request.post(f"{guarded_url}/console/do/{action}", form=form)
            assert answer.status == 403, action
        assert (await page.context.request.post(f"{guarded_url}/console/logout", form={"csrf": str(csrf)})).status == 403
    headers = {"x-api-key": token}
    memory = (await operator.get("/v1/long-term-memory/m-ada", headers=headers)).json()
    assert (memory["text"], memory["pinned"]) == ("the secret of ada", False)
    await page.goto("/console")
    await expect(page.get_by_role("navigation", name="Sections")).to_be_visible()


async def test_read_only_key_cannot_change_anything(new_page: Make, guarded_url: str, operator: httpx.AsyncClient) -> None:
    page = await logged_in(new_page, guarded_url, (await key(operator, role="read"))["token"])
    csrf = str(await page.locator("input[name=csrf]").first.get_attribute("value"))
    given = {"id": "m-ada", "user": "ada", "typed": "ada", "text": "taken over", "role": "read", "csrf": csrf}
    for action in ("pin", "pin-chosen", "edit-memory", "forget", "load-demo", "erase", "create-key", "save-rules", "reject-quarantined"):
        form: dict[str, str | float | bool] = {**given}
        assert (await page.context.request.post(f"{guarded_url}/console/do/{action}", form=form)).status == 403, action
