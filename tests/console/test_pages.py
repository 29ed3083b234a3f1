"""Test each page, and verify each action through the API."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
from playwright.async_api import Page, expect

from tests.support.waiting import wait_until

DEMO = "console-demo"
FACT = f"{DEMO}-fact-3"
RECIPES = "Mara wants weekday recipes that take twenty minutes at most."
Make = Callable[..., Any]


async def test_empty_store_shows_first_steps_then_loads_and_removes_the_demo(new_page: Make, open_url: str, api: httpx.AsyncClient) -> None:
    page: Page = await new_page(open_url)
    await page.goto("/")
    await expect(page).to_have_url(f"{open_url}/console")
    await expect(page.locator(".snippet")).to_have_count(3)
    await page.get_by_role("button", name="Load a demo conversation").click()
    await expect(page.get_by_role("status")).to_contain_text("loaded")
    assert len((await api.get(f"/v1/working-memory/{DEMO}", params={"user_id": DEMO})).json()["messages"]) == 7
    assert (await memory(api, FACT))["text"] == RECIPES
    await page.get_by_role("button", name="Remove it").click()
    await expect(page.locator(".snippet")).to_have_count(3)
    assert (await api.get(f"/v1/working-memory/{DEMO}", params={"user_id": DEMO})).status_code == 404
    assert (await api.get(f"/v1/long-term-memory/{FACT}")).status_code == 404


async def test_person_is_found_and_shown(new_page: Make, open_url: str, api: httpx.AsyncClient) -> None:
    page = await demo_page(new_page, open_url, api, "/console/people")
    await page.get_by_label("A user id").fill("console")
    await page.get_by_role("button", name="Search").click()
    await page.wait_for_url("**/people?q=console*")
    await page.get_by_role("link", name=DEMO).click()
    await expect(page.get_by_role("heading", level=1)).to_contain_text(DEMO)
    await expect(page.locator("#facts .memory")).to_have_count(5)
    await expect(page.locator(".slots")).to_contain_text("Mara lives in Porto.")
    await expect(page.locator(".week")).to_contain_text("+5")
    await page.get_by_role("link", name="Messages", exact=True).click()
    await expect(page.locator("#facts")).to_contain_text("On Saturdays we go surfing")


async def test_source_opens_the_message_highlighted(new_page: Make, open_url: str, api: httpx.AsyncClient) -> None:
    page = await demo_page(new_page, open_url, api, f"/console/people/{DEMO}")
    await page.locator("#facts .memory", has_text=RECIPES).get_by_label("Where this comes from").click()
    await expect(page.locator(".chosen")).to_contain_text("twenty minutes at most")
    await expect(page.locator(".chosen")).to_be_in_viewport()
    background = "each => getComputedStyle(each).backgroundColor"
    other = await page.locator(".chat .user:not(.chosen) .bubble").first.evaluate(background)
    assert await page.locator(".chosen .bubble").evaluate(background) != other
    await expect(page.locator(".chosen .became")).to_contain_text(RECIPES)


async def test_conversation_names_its_speakers(new_page: Make, open_url: str, api: httpx.AsyncClient) -> None:
    message = {"role": "user", "name": "Giulia", "content": "I live in Rome."}
    assert (await api.post("/v1/working-memory/two-speakers/messages", json={"messages": [message]})).status_code == 200
    page = await new_page(open_url)
    await page.goto("/console/sessions/two-speakers")
    await expect(page.locator(".chat .meta").first).to_contain_text("User · Giulia")


async def test_memory_is_edited_and_the_change_undone(new_page: Make, open_url: str, api: httpx.AsyncClient) -> None:
    page = await demo_page(new_page, open_url, api, f"/console/people/{DEMO}")
    line = page.locator("#facts .memory", has_text=RECIPES)
    await line.get_by_label("Edit").click()
    await page.get_by_label("Text", exact=True).fill("Mara wants recipes of ten minutes.")
    await page.locator("#facts").get_by_role("button", name="Save").click()
    await expect(page.get_by_role("status")).to_contain_text("Memory saved.")
    assert (await memory(api, FACT))["text"] == "Mara wants recipes of ten minutes."
    await page.get_by_role("button", name="Undo").click()
    await expect(page.get_by_role("status")).to_contain_text("undone")
    assert (await memory(api, FACT))["text"] == RECIPES


async def test_memory_is_pinned_and_unpinned(new_page: Make, open_url: str, api: httpx.AsyncClient) -> None:
    page = await demo_page(new_page, open_url, api, f"/console/people/{DEMO}")
    line = page.locator("#facts .memory", has_text=RECIPES)
    await line.get_by_role("button", name="Pin", exact=True).click()
    await expect(page.get_by_role("status")).to_contain_text("Pinned.")
    assert (await memory(api, FACT))["pinned"] is True
    await line.get_by_role("button", name="Unpin").click()
    await expect(page.get_by_role("status")).to_contain_text("No longer")
    assert (await memory(api, FACT))["pinned"] is False


async def test_memory_is_forgotten_after_a_preview_and_remembered_again(new_page: Make, open_url: str, api: httpx.AsyncClient) -> None:
    page = await demo_page(new_page, open_url, api, f"/console/people/{DEMO}")
    await page.locator("#facts .memory", has_text=RECIPES).get_by_label("Forget").click()
    await expect(page.locator("del", has_text=RECIPES)).to_be_visible()
    assert (await memory(api, FACT))["text"] == RECIPES, "a preview changes nothing"
    await page.get_by_role("button", name="Forget").click()
    await expect(page.get_by_role("status")).to_contain_text("Forgotten.")
    await expect(page.locator("#facts .memory", has_text=RECIPES)).to_have_count(0)
    assert (await api.get(f"/v1/long-term-memory/{FACT}")).status_code == 404
    await page.get_by_role("button", name="Undo").click()
    await expect(page.get_by_role("status")).to_contain_text("Remembered again.")
    assert (await memory(api, FACT))["text"] == RECIPES


async def test_block_is_edited_and_a_stale_form_is_refused(new_page: Make, open_url: str, api: httpx.AsyncClient) -> None:
    page = await demo_page(new_page, open_url, api, f"/console/people/{DEMO}")
    other = await demo_page(new_page, open_url, api, f"/console/people/{DEMO}")
    await page.locator(".block textarea").fill("Soup on Mondays.")
    await page.locator(".block").get_by_role("button", name="Save").click()
    await expect(page.get_by_role("status")).to_contain_text("Block saved.")
    assert await block(api) == "Soup on Mondays."
    await other.locator(".block textarea").fill("Pasta on Mondays.")
    await other.locator(".block").get_by_role("button", name="Save").click()
    await expect(other.get_by_role("alert")).to_contain_text("It changed in the meantime")
    assert await block(api) == "Soup on Mondays."


async def test_search_explains_filters_and_pages(new_page: Make, open_url: str, api: httpx.AsyncClient) -> None:
    many = [{"id": f"many-{number}", "text": f"Ben counted {number} birds.", "user_id": "ben"} for number in range(30)]
    assert (await api.post("/v1/long-term-memory/", json={"memories": many, "deduplicate": False})).status_code == 200
    page = await demo_page(new_page, open_url, api, "/console/memories")
    await page.get_by_role("searchbox").fill("what must Lia not eat")
    await page.get_by_role("button", name="Search").click()
    await expect(page.locator(".memory").first).to_contain_text("peanuts")
    await expect(page.locator(".memory").first.get_by_role("img", name="Relevance")).to_be_visible()
    await page.goto("/console/memories?user=ben")
    await expect(page.locator(".memory")).to_have_count(25)
    await page.get_by_role("link", name="Next").click()
    await expect(page.locator(".memory")).to_have_count(5)
    await expect(page).to_have_url(f"{open_url}/console/memories?user=ben&offset=25")
    await page.get_by_role("link", name="Remove this filter").click()
    await expect(page.locator(".chip strong")).to_have_count(0)


async def test_prompt_page_shows_the_prompt_of_the_api(new_page: Make, open_url: str, api: httpx.AsyncClient) -> None:
    page = await demo_page(new_page, open_url, api, "/console/prompt")
    await page.get_by_label("Query").fill("What can I cook for Lia?")
    await page.get_by_label("User", exact=True).fill(DEMO)
    await page.get_by_label("Session").fill(DEMO)
    await page.get_by_label("Profile").check()
    await page.get_by_role("button", name="Build prompt").click()
    await expect(page.locator(".prompt > li")).not_to_have_count(0)
    body = {"query": "What can I cook for Lia?", "user_id": DEMO, "long_term_search": True, "profile": {}}
    answer = await api.post("/v1/memory/prompt", json={**body, "session": {"session_id": DEMO, "user_id": DEMO}})
    shown = ["\n".join(await part.locator("pre").all_text_contents()) for part in await page.locator(".prompt > li").all()]
    assert shown == [message["content"]["text"] for message in answer.json()["messages"]]
    await expect(page.get_by_role("img", name="Tokens of each section")).to_be_visible()
    await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await page.locator("[data-copy=curl]").click()
    await expect(page.locator("[data-copy=curl]")).to_have_class("quiet copied")
    assert "/v1/memory/prompt" in await page.evaluate("navigator.clipboard.readText()")


async def test_reading_and_acting_work_without_scripts(new_page: Make, open_url: str, api: httpx.AsyncClient) -> None:
    page = await demo_page(new_page, open_url, api, "/console", java_script_enabled=False)
    await expect(page.locator(".memory").first).to_be_visible()
    await page.get_by_role("link", name="People").click()
    await page.get_by_role("link", name=DEMO).click()
    await expect(page.locator("#facts .memory")).to_have_count(5)
    await page.locator("#facts .memory", has_text=RECIPES).get_by_label("Where this comes from").click()
    await expect(page.locator(".chosen")).to_contain_text("twenty minutes")
    await page.goto("/console/memories?q=peanuts")
    await expect(page.locator(".memory").first).to_contain_text("peanuts")
    await page.goto(f"/console/prompt?q=peanuts&user={DEMO}")
    await expect(page.locator(".prompt")).to_contain_text("peanuts")
    await page.goto(f"/console/people/{DEMO}")
    await page.locator("#facts .memory", has_text=RECIPES).get_by_role("button", name="Pin", exact=True).click()
    await expect(page.get_by_role("status")).to_contain_text("Pinned.")
    assert (await memory(api, FACT))["pinned"] is True
    await api.patch(f"/v1/long-term-memory/{FACT}", json={"pinned": False})


async def test_missing_and_invalid_addresses_show_error_pages(new_page: Make, open_url: str) -> None:
    page: Page = await new_page(open_url)
    for path, status in (("/nowhere", 404), ("/sessions/nowhere", 404), ("/memories?offset=-1", 422), ("/memories?kind=odd", 422)):
        answer = await page.goto(f"/console{path}")
        assert answer is not None
        assert answer.status == status
        await expect(page.get_by_role("alert")).to_be_visible()
        await expect(page.get_by_role("navigation", name="Sections")).to_be_visible()


async def test_browsers_that_prefer_chinese_read_chinese(new_page: Make, open_url: str) -> None:
    page: Page = await new_page(open_url, locale="zh-CN")
    await page.goto("/console/people")
    await expect(page.get_by_role("heading", level=1)).to_have_text("人员")
    await expect(page.locator("html")).to_have_attribute("lang", "zh")


async def demo_page(new_page: Make, url: str, api: httpx.AsyncClient, path: str, **options: Any) -> Page:
    """Open a page, after loading the demo data if necessary."""
    page: Page = await new_page(url, **options)
    if (await api.get(f"/v1/working-memory/{DEMO}", params={"user_id": DEMO})).status_code == 404:
        await page.goto("/console")
        form = page.locator("form", has_text="demo").first
        if await form.count() == 0:
            raise AssertionError("the store is not empty, and has no demo")
        await form.get_by_role("button").click()
        await expect(page.get_by_role("status")).to_contain_text("loaded")

    async def has_profile() -> bool:
        return bool((await api.get("/v1/profile", params={"user_id": DEMO})).json()["slots"])

    await wait_until(has_profile, "the demo's profile")
    await page.goto(path)
    return page


async def memory(api: httpx.AsyncClient, name: str) -> dict[str, Any]:
    answer = await api.get(f"/v1/long-term-memory/{name}")
    assert answer.status_code == 200, answer.text
    return answer.json()


async def block(api: httpx.AsyncClient) -> str:
    return (await api.get("/v1/blocks/cooking", params={"user_id": DEMO})).json()["value"]
