"""Test that pages show who wrote a memory, what changed, what is pending, and what was deleted."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
from playwright.async_api import Page, expect

from tests.console.conftest import ADMIN
from tests.console.sample import POISON

Make = Callable[..., Any]


async def _remember(api: httpx.AsyncClient, user: str, *texts: str, **fields: Any) -> None:
    memories: list[dict[str, Any]] = [{"id": f"{user}-{at}", "text": text, "user_id": user, **fields} for at, text in enumerate(texts)]
    assert (await api.post("/v1/long-term-memory/", json={"memories": memories})).status_code == 200


async def test_page_names_the_key_that_wrote_a_memory_and_a_message(new_page: Make, guarded_url: str) -> None:
    async with httpx.AsyncClient(base_url=guarded_url, headers={"x-api-key": ADMIN}) as admin:
        made = (await admin.post("/v1/auth/tokens", json={"description": "import-2024 <b>", "role": "write"})).json()
    async with httpx.AsyncClient(base_url=guarded_url, headers={"x-api-key": made["token"]}) as writer:
        await _remember(writer, "bo", "Bo is 214 years old.")
        said = {"user_id": "bo", "messages": [{"role": "user", "content": "I live in Rome."}]}
        assert (await writer.post("/v1/working-memory/rome/messages", json=said)).status_code == 200
    page: Page = await new_page(guarded_url)
    await page.goto("/console/login")
    await page.get_by_label("API key").fill(ADMIN)
    await page.get_by_role("button", name="Log in").click()
    for path, line in (("/people/bo", ".memory"), ("/memories?user=bo", ".memory"), ("/sessions/rome?user=bo", ".chat li")):
        await page.goto(f"/console{path}")
        await expect(page.locator(line).first.locator(".writer")).to_have_text("written by import-2024 <b>")
    async with httpx.AsyncClient(base_url=guarded_url, headers={"x-api-key": ADMIN}) as admin:
        await _remember(admin, "bo", "Bo likes tea.", id="bo-tea")
    await page.goto("/console/people/bo")
    await page.locator(".memory", has_text="214").get_by_role("link", name="import-2024").click()
    await expect(page.locator(".count")).to_contain_text("1 found")
    await expect(page.locator(".chip", has_text="Written by")).to_contain_text("import-2024 <b>")
    await page.goto("/console/memories?user=bo")
    await page.locator("details.add summary").click()
    await page.get_by_label("Written by").select_option(label="import-2024 <b>")
    await page.get_by_label("Said by").select_option(label="a program")
    await page.get_by_role("button", name="Apply").click()
    await expect(page.locator(".list .memory")).to_have_count(1)
    await expect(page.locator(".list .memory")).to_contain_text("214 years old")


async def test_saved_memory_is_marked_with_what_changed(new_page: Make, open_url: str, api: httpx.AsyncClient) -> None:
    await _remember(api, "cy", "Cy lives in Rome.", memory_type="semantic")
    page: Page = await new_page(open_url)
    await page.goto("/console/people/cy?edit=cy-0")
    await page.get_by_role("textbox", name="Text").fill("Cy lives in Lisbon.")
    await page.get_by_role("button", name="Save").first.click()
    await expect(page.locator(".saved del")).to_have_text("Rome")
    await expect(page.locator(".saved ins")).to_have_text("Lisbon")
    await page.get_by_role("button", name="Undo").click()
    await expect(page.locator(".saved ins")).to_have_text("Rome")


async def test_navigation_counts_decisions(new_page: Make, open_url: str, api: httpx.AsyncClient) -> None:
    page: Page = await new_page(open_url)
    await _remember(api, "di", POISON, source_class="tool")
    waits = sum([(await api.get(path)).json()["total"] for path in ("/v1/quarantine", "/v1/changes?state=proposed")])
    await page.goto("/console")
    await expect(page.locator("nav .badge")).to_have_text(f"{waits} To review")
    await page.goto("/console/changes?user=di")
    await page.locator("summary", has_text="Delete").click()
    await page.get_by_role("button", name="Delete").click()
    await expect(page.get_by_role("status")).to_be_visible()
    await expect(page.locator("nav .badge")).to_have_count(1 if waits > 1 else 0)


async def test_forgetting_and_receipt_of_an_erasure_are_listed(
    new_page: Make, open_url: str, api: httpx.AsyncClient, tmp_path: Path
) -> None:
    await _remember(api, "ed", "Ed's ex is Carla.", "Ed plays chess.")
    await api.post("/v1/memory/forget", json={"ids": ["ed-0"], "user_id": "ed"})
    page: Page = await new_page(open_url)
    await page.goto("/console/changes?tab=all&user=ed")
    await expect(page.locator(".change")).to_contain_text("by a caller without a login")
    await expect(page.locator(".change")).to_contain_text("facts 1")
    await expect(page.locator(".change del")).to_have_text("Ed's ex is Carla.")
    await page.locator(".change summary").click()
    await expect(page.locator(".sure")).to_contain_text("This restores all of the lines below.")
    await page.get_by_role("button", name="Undo now").click()
    await expect(page.get_by_role("status")).to_contain_text("Remembered again")
    await expect(page.get_by_role("heading", level=1)).to_have_text("Restored")
    await expect(page.locator(".memory .text p").first).to_have_text("Ed's ex is Carla.")
    await expect(page.get_by_role("status").get_by_role("button")).to_have_count(0)
    assert (await api.get("/v1/long-term-memory/ed-0")).status_code == 200
    await page.get_by_role("link", name="Back").click()
    await expect(page).to_have_url(f"{open_url}/console/changes?tab=all&user=ed")
    await page.get_by_role("link", name="Restored").click()
    await page.get_by_role("link", name="Versions").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Versions")
    erased = await api.delete("/v1/users/ed", params={"wait": 20})
    await page.goto("/console/changes?tab=receipts")
    await page.locator(f'a[href$="{erased.headers["x-operation-id"]}"]').click()
    await expect(page.locator(".facts")).to_contain_text("by a caller without a login")
    async with page.expect_download() as download:
        await page.get_by_role("link", name="JSON").click()
    file, download_name = tmp_path / "receipt.json", (await download.value).suggested_filename
    await (await download.value).save_as(file)
    receipt = json.loads(file.read_text())
    assert download_name == f"{erased.headers['x-operation-id']}.json"
    assert receipt["stages"]["memories"] == 2
    assert "ed" not in receipt.values()


async def test_chosen_memories_are_exported(new_page: Make, open_url: str, api: httpx.AsyncClient, tmp_path: Path) -> None:
    await _remember(api, "fay", "Fay sings.", "Fay dances.", "Fay draws.")
    page: Page = await new_page(open_url)
    await page.goto("/console/memories?user=fay")
    for tick in (await page.locator(".tick").all())[:2]:
        await tick.check()
    await expect(page.locator("[data-chosen]")).to_have_text("2")
    async with page.expect_download() as download:
        await page.locator("#chosen").get_by_role("button", name="Export").click()
    file = tmp_path / "memories.jsonl"
    await (await download.value).save_as(file)
    assert len({json.loads(line)["text"] for line in file.read_text().splitlines()}) == 2


async def test_ended_memories_are_shown_and_made_valid_again(new_page: Make, open_url: str, api: httpx.AsyncClient) -> None:
    allergy = "Gus is allergic to shellfish: never cook oysters for Gus."
    await _remember(api, "gus", allergy, id="gus-allergy", memory_type="semantic", valid_to="2026-10-28T09:00:00Z")
    for at, city in enumerate(("Rome", "Milan")):
        await _remember(api, "gus", f"Gus lives in {city}.", id=f"gus-home-{at}", memory_type="semantic", slot="home_city")
    page: Page = await new_page(open_url)
    await page.goto("/console/prompt?q=Does+Gus+eat+oysters%3F&user=gus")
    left = page.locator(".left-out .memory", has_text=allergy)
    await expect(left.locator(".tag")).to_have_text("no longer true since 28 Oct 2026")
    await expect(page.locator(".left-out .memory", has_text="Rome").locator(".tag")).to_contain_text("replaced by another memory")
    await page.goto("/console/people/gus")
    await expect(page.locator("#facts .memory")).to_have_count(1)
    await page.get_by_role("link", name="Ended ones, too").click()
    await expect(page.locator(".memory", has_text="Gus lives in Rome.")).to_have_count(1)
    await page.locator(".memory", has_text="replaced by another").get_by_role("button", name="Undo the replacement").click()
    await expect(page.get_by_role("status")).to_contain_text("valid again")
    assert not (await api.get("/v1/long-term-memory/gus-home-0")).json().get("superseded_by")
    line = page.locator(".memory", has_text=allergy)
    await expect(page.locator(".tag", has_text="no longer true")).to_have_text("no longer true since 28 Oct 2026")
    await line.get_by_role("button", name="Make valid again").click()
    await expect(page.get_by_role("status")).to_contain_text("valid again")
    await expect(page.locator(".tag", has_text="no longer true")).to_have_count(0)
    assert not (await api.get("/v1/long-term-memory/gus-allergy")).json().get("valid_to")
    await page.get_by_role("status").get_by_role("button", name="Undo").click()
    await expect(page.locator(".tag", has_text="no longer true")).to_have_text("no longer true since 28 Oct 2026")
    for query, told in (
        ("Where+does+Gus+live%3F&limit=1", "It is not among this prompt's memories. Beyond the limit"),
        ("Does+Gus+eat+oysters%3F", "It is among this prompt's memories."),
    ):
        await page.goto(f"/console/prompt?q={query}&user=gus")
        await page.locator(".left-out .memory", has_text=allergy).get_by_role("button", name="Make valid again").click()
        await expect(page.locator(".notice", has_text="this prompt's memories")).to_contain_text(told)
        await page.get_by_role("status").get_by_role("button", name="Undo").click()
        await expect(page.locator(".left-out .tag", has_text="no longer true")).to_have_count(1)


async def test_user_page_of_a_namespace_counts_memories_in_other_namespaces(new_page: Make, open_url: str, api: httpx.AsyncClient) -> None:
    await _remember(api, "hal", "Hal plays chess.", namespace="chat", memory_type="semantic")
    await _remember(api, "hal", "Hal broke a chair.", id="hal-ticket", namespace="support", memory_type="semantic")
    page: Page = await new_page(open_url, java_script_enabled=False)
    for path in ("/people/hal", "/erase/hal"):
        await page.goto(f"/console{path}?namespace=chat")
        await expect(page.locator(".narrowed")).to_contain_text("only the namespace chat. Not shown here (support): Memories 1")
        await page.get_by_role("link", name="Show all namespaces").last.click()
        await expect(page).to_have_url(f"{open_url}/console{path}")
        await expect(page.locator(".narrowed")).to_have_count(0)
    await page.goto("/console/people/hal?namespace=chat")
    await expect(page.get_by_role("link", name="Export: chat")).to_be_visible()


async def test_user_page_adds_a_memory_and_forgets_selected_memories(new_page: Make, open_url: str, api: httpx.AsyncClient) -> None:
    await _remember(api, "ida", "Ida sails.", "Ida knits.", namespace="chat", memory_type="semantic")
    page: Page = await new_page(open_url)
    await page.goto("/console/people/ida?namespace=chat")
    await page.get_by_text("Add a memory").click()
    await page.get_by_role("textbox", name="Add a memory").fill("Ida is allergic to nuts.")
    await page.get_by_role("button", name="Save").first.click()
    await expect(page.locator("#facts .memory.saved")).to_contain_text("Ida is allergic to nuts.")
    search = {"user_id": {"eq": "ida"}, "namespace": {"eq": "chat"}, "memory_type": {"eq": "semantic"}}
    assert (await api.post("/v1/long-term-memory/search", json=search)).json()["total"] == 3
    for text in ("sails", "knits"):
        await page.locator("#facts .memory", has_text=text).locator(".tick").check()
    await page.locator("#chosen").get_by_role("button", name="Forget").click()
    await expect(page.locator("del")).to_have_count(2)
    await page.get_by_role("button", name="Forget").click()
    await expect(page.get_by_role("status")).to_contain_text("Forgotten.")
    await expect(page.locator("#facts .memory")).to_have_count(1)
