"""Who wrote it, what changed, what waits for a decision, and what was forgotten or erased: the page answers."""

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
    memories = [{"id": f"{user}-{at}", "text": text, "user_id": user, **fields} for at, text in enumerate(texts)]
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
    await page.goto("/console/people/bo")
    await page.get_by_role("link", name="import-2024").first.click()
    await expect(page.locator(f"#key-{made['id']}")).to_contain_text("import-2024")


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
    await expect(page.locator(".change")).to_contain_text("by somebody without a login")
    await expect(page.locator(".change")).to_contain_text("facts 1")
    await page.locator(".change summary").click()
    await page.get_by_role("button", name="Undo now").click()
    await expect(page.get_by_role("status")).to_contain_text("Undone")
    await expect(page.get_by_role("status").get_by_role("button")).to_have_count(0)
    assert (await api.get("/v1/long-term-memory/ed-0")).status_code == 200
    erased = await api.delete("/v1/users/ed", params={"wait": 20})
    await page.goto("/console/changes?tab=receipts")
    await page.locator(f'a[href$="{erased.headers["x-operation-id"]}"]').click()
    await expect(page.locator(".facts")).to_contain_text("by somebody without a login")
    async with page.expect_download() as download:
        await page.get_by_role("link", name="JSON").click()
    file = tmp_path / "receipt.json"
    await (await download.value).save_as(file)
    receipt = json.loads(file.read_text())
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
