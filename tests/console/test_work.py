"""Test data changes and operator tasks, and verify each action through the API."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.async_api import Page, expect
from ulid import ULID

from agent_memory.foundation.core.settings import Settings
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.foundation.storage.outbox import Outbox
from agent_memory.interfaces.http.app import create_app
from agent_memory.runtime import open_runtime
from tests.console.conftest import ADMIN
from tests.console.sample import POISON, SESSION, USER, load_sample
from tests.support.api import serving
from tests.support.rig import claim_kind

Make = Callable[..., Any]
NIGHT = {"user_id": "dora", "session_id": "night"}


async def visited(new_page: Make, url: str, path: str) -> Page:
    page: Page = await new_page(url)
    await page.goto(f"/console{path}")
    return page


async def listed(api: httpx.AsyncClient, path: str, **query: Any) -> Any:
    answer = await api.get(path, params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_person_shows_timeline_week_and_procedures(new_page: Make, open_url: str, api: httpx.AsyncClient) -> None:
    await load_sample(api)
    page = await visited(new_page, open_url, f"/people/{USER}")
    await expect(page.get_by_role("img", name="Timeline of events")).to_be_visible()
    await expect(page.locator("#timeline svg :is(circle, rect)")).to_have_count(7)
    await expect(page.locator("#timeline .events li").first).to_contain_text("pottery")
    await expect(page.locator(".changes")).to_contain_text("Mara lives in Hamburg.")
    await expect(page.locator(".procedure")).to_contain_text("helped 3")
    await page.locator(".procedure summary").click()
    await expect(page.locator(".steps li")).to_have_count(3)


async def test_quarantined_memory_is_approved_or_deleted(new_page: Make, open_url: str, api: httpx.AsyncClient) -> None:
    for end in ("Approve", "Delete"):
        memory = {"id": f"poison-{end}", "text": POISON, "user_id": f"victim-{end}", "source_class": "tool"}
        assert (await api.post("/v1/long-term-memory/", json={"memories": [memory]})).status_code == 200
        page = await visited(new_page, open_url, f"/changes?user=victim-{end}")
        await expect(page.locator(".change")).to_contain_text(POISON)
        if end == "Delete":
            await page.locator("summary", has_text="Delete").click()
            assert (await listed(api, "/v1/quarantine", user_id=f"victim-{end}"))["total"] == 1, "it asks first"
        await page.get_by_role("button", name=end).click()
        await expect(page.get_by_role("status")).to_be_visible()
        assert (await listed(api, "/v1/quarantine", user_id=f"victim-{end}"))["total"] == 0
        stays = (await api.get(f"/v1/long-term-memory/poison-{end}")).status_code == 200
        assert stays == (end == "Approve")


async def test_proposed_forgetting_shows_texts_and_is_approved_and_undone(new_page: Make, open_url: str, api: httpx.AsyncClient) -> None:
    await load_sample(api)
    (proposal,) = (await listed(api, "/v1/changes", state="proposed", user_id=USER))["changes"]
    named = {each["memory_id"] for each in proposal["memories"]}
    page = await visited(new_page, open_url, f"/changes?user={USER}")
    await expect(page.locator(".change .diff del", has_text="robotics company").first).to_be_visible()
    card = page.locator(".change", has_text="the user asked to forget it")
    await expect(card).to_contain_text("message in its session")
    await expect(card).not_to_contain_text("writer unknown")
    await expect(card.locator(".tag").first).to_have_text("would forget")
    planned = await card.locator(".meta", has_text="If you approve, this is deleted:").inner_text()
    await card.locator("summary", has_text="Approve").click()
    await card.get_by_role("button", name="Forget all of these").click()
    await expect(page.get_by_role("status")).to_contain_text("Approved")
    gone = [name for name in named if (await api.get(f"/v1/long-term-memory/{name}")).status_code == 404]
    assert gone
    (done,) = (await listed(api, "/v1/changes", kind="forget", state="applied", user_id=USER))["changes"]
    assert re.findall(r"\d+", planned) == [str(count) for count in done["forgotten"].values() if count]
    await page.get_by_role("status").get_by_role("link", name="What was forgotten").click()
    await expect(page.locator("del", has_text="robotics company").first).to_be_visible()
    await page.get_by_role("button", name="Restore all of this").click()
    await expect(page.get_by_role("status")).to_contain_text("Remembered again.")
    await expect(page.locator("del")).to_have_count(0)
    await page.get_by_role("link", name=SESSION).last.click()
    await expect(page.locator(".chat .user", has_text="robotics company").first).to_be_visible()


async def test_proposal_is_rejected(new_page: Make, open_url: str, api: httpx.AsyncClient) -> None:
    said = [{"role": "user", "content": text} for text in ("I am allergic to hazelnuts.", "Please forget that I am allergic to hazelnuts.")]
    said_by = {"user_id": "nuts", "messages": said}
    assert (await api.post("/v1/working-memory/nuts/messages", params={"wait": "promoted"}, json=said_by)).status_code == 200
    assert (await api.post("/v1/working-memory/nuts/flush", params={"user_id": "nuts", "wait": 20})).status_code == 200
    (proposal,) = (await listed(api, "/v1/changes", state="proposed", user_id="nuts"))["changes"]
    page = await visited(new_page, open_url, "/changes?user=nuts")
    await page.get_by_role("button", name="Reject").click()
    await expect(page.get_by_role("status")).to_contain_text("Rejected")
    assert (await listed(api, f"/v1/changes/{proposal['id']}"))["state"] == "rejected"


async def test_replaced_fact_is_shown_as_a_diff_and_brought_back(new_page: Make, open_url: str, api: httpx.AsyncClient) -> None:
    for text in ("Zoe lives in Turin.", "Zoe lives in Oslo."):
        memory = {"id": text, "text": text, "slot": "home_city", "user_id": "zoe", "memory_type": "semantic"}
        assert (await api.post("/v1/long-term-memory/", json={"memories": [memory]})).status_code == 200
    page = await visited(new_page, open_url, "/changes?tab=all&user=zoe&kind=supersede")
    await expect(page.locator(".change del")).to_have_text("Zoe lives in Turin.")
    await expect(page.locator(".change .diff ins")).to_have_text("Zoe lives in Oslo.")
    await page.locator(".change summary").dblclick()
    assert {each["state"] for each in (await listed(api, "/v1/changes", user_id="zoe"))["changes"]} == {"applied"}
    await page.locator(".change summary").click()
    await page.locator(".change").get_by_role("button", name="Undo now").click()
    await expect(page.get_by_role("status")).to_contain_text("Undone.")
    (change,) = (await listed(api, "/v1/changes", user_id="zoe", kind="supersede"))["changes"]
    assert change["state"] == "undone"
    found = await api.post("/v1/long-term-memory/search", json={"user_id": {"eq": "zoe"}})
    assert [memory["text"] for memory in found.json()["memories"]] == ["Zoe lives in Turin."]


async def test_consolidation_is_shown_and_undone(new_page: Make, open_url: str, api: httpx.AsyncClient) -> None:
    memories = [{"id": f"copy-{n}", "text": "Eve sings.", "user_id": "eve"} for n in range(2)]
    assert (await api.post("/v1/long-term-memory/", json={"memories": memories, "deduplicate": False})).status_code == 200
    answer = await api.post("/v1/long-term-memory/compact", params={"user_id": "eve"})
    assert answer.headers["x-pending"] == "false"
    page = await visited(new_page, open_url, "/changes?tab=all&user=eve&kind=merge")
    await page.locator(".change summary").click()
    await page.locator(".change").get_by_role("button", name="Undo now").click()
    await expect(page.get_by_role("status")).to_contain_text("Undone.")
    found = await api.post("/v1/long-term-memory/search", json={"user_id": {"eq": "eve"}})
    assert found.json()["total"] == 2


async def test_run_of_several_changes_is_undone_as_a_whole(new_page: Make, open_url: str, api: httpx.AsyncClient) -> None:
    memories = [{"id": f"old-{n}", "text": f"Ivy has {n} irises.", "user_id": "ivy"} for n in range(3)]
    assert (await api.post("/v1/long-term-memory/", json={"memories": memories, "deduplicate": False})).status_code == 200
    policy = {"policy": {"budget": 0}}
    answer = await api.post("/v1/long-term-memory/forget", params={"user_id": "ivy", "dry_run": False}, json=policy)
    assert answer.json()["deleted"] == 3
    page = await visited(new_page, open_url, "/changes?tab=all&user=ivy")
    await page.locator("summary", has_text="Undo all of this run").click()
    await page.locator(".run").get_by_role("button", name="Undo now").click()
    await expect(page.get_by_role("status")).to_contain_text("All changes of this run are undone.")
    found = await api.post("/v1/long-term-memory/search", json={"user_id": {"eq": "ivy"}})
    assert found.json()["total"] == 3


async def test_several_memories_are_pinned_and_forgotten_at_once(new_page: Make, open_url: str, api: httpx.AsyncClient) -> None:
    memories = [{"id": f"bulk-{number}", "text": f"Kim has {number} kites.", "user_id": "kim"} for number in range(3)]
    assert (await api.post("/v1/long-term-memory/", json={"memories": memories, "deduplicate": False})).status_code == 200
    page = await visited(new_page, open_url, "/memories?user=kim")
    await page.get_by_label("Choose all").check()
    await page.locator("#chosen").get_by_role("button", name="Pin").click()
    await expect(page.get_by_role("status")).to_contain_text("Pinned.")
    assert [(await listed(api, f"/v1/long-term-memory/bulk-{number}"))["pinned"] for number in range(3)] == [True] * 3
    await page.locator("#memory-bulk-0").get_by_label("Choose").check()
    await page.locator("#memory-bulk-2").get_by_label("Choose").check()
    await page.locator("#chosen").get_by_role("button", name="Forget").click()
    await expect(page.locator("del")).to_have_count(2)
    await page.get_by_role("button", name="Forget").click()
    await expect(page.get_by_role("status")).to_contain_text("Forgotten.")
    await page.get_by_role("link", name="What was forgotten").click()
    await expect(page.locator("del")).to_have_text(["Kim has 0 kites.", "Kim has 2 kites."])
    await expect(page.get_by_role("main")).to_contain_text("can be undone until")
    statuses = [(await api.get(f"/v1/long-term-memory/bulk-{number}")).status_code for number in range(3)]
    assert statuses == [404, 200, 404]


async def test_rules_are_saved_and_kept_by_the_form(new_page: Make, open_url: str, api: httpx.AsyncClient) -> None:
    given = {"categories": [{"name": "diet", "description": "what somebody eats"}], "do_not_record": ["salary"], "language": "English"}
    assert (await api.put("/v1/extraction-rules", params={"namespace": "shop"}, json=given)).status_code == 200
    page = await visited(new_page, open_url, "/server?namespace=shop")
    await page.get_by_label("What to remember, and what to leave out").fill("Keep what they eat.")
    await page.get_by_label("Propose a change before").check()
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_role("status")).to_contain_text("Rules saved.")
    rules = await listed(api, "/v1/extraction-rules", namespace="shop")
    assert rules.items() >= (given | {"instructions": "Keep what they eat.", "review": True}).items()
    assert not (await listed(api, "/v1/extraction-rules")).get("instructions")


async def test_person_is_exported_then_erased_with_a_receipt(new_page: Make, open_url: str, api: httpx.AsyncClient, tmp_path: Path) -> None:
    memory = {"id": "leaving", "text": "Lou likes lemons.", "user_id": "lou/with slash"}
    assert (await api.post("/v1/long-term-memory/", json={"memories": [memory]})).status_code == 200
    page = await visited(new_page, open_url, "/people/lou/with slash")
    async with page.expect_download() as started:
        await page.get_by_role("link", name="Export").click()
    assert re.fullmatch(r"lou_with slash \d{4}-\d\d-\d\d\.jsonl", (await started.value).suggested_filename)
    await (await started.value).save_as(tmp_path / "lou.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "lou.jsonl").read_text("utf-8").splitlines()]
    assert lines[-1]["kind"] == "end"
    assert any("Lou likes lemons." in json.dumps(line) for line in lines)
    async with page.expect_download() as started:
        await page.get_by_role("link", name="Copy to read").click()
    assert re.fullmatch(r"lou_with slash \d{4}-\d\d-\d\d\.txt", (await started.value).suggested_filename)
    await (await started.value).save_as(tmp_path / "lou.txt")
    copy = (tmp_path / "lou.txt").read_text("utf-8")
    assert copy.startswith("Everything remembered about lou/with slash")
    assert "fact: Lou likes lemons.\n" in copy
    assert copy.endswith("End of the copy: it is complete.\n")
    await page.get_by_role("link", name="Erase").click()
    await page.get_by_label("Type the user id").fill("lou")
    await page.get_by_role("button", name="Erase").click()
    await expect(page.get_by_role("alert")).to_contain_text("not the id of the user")
    await page.go_back()
    await page.get_by_label("Type the user id").fill("lou/with slash")
    await page.get_by_role("button", name="Erase").click()
    await expect(page.get_by_role("heading", level=1)).to_contain_text("Erasure")
    receipt = await page.locator(".facts code").first.inner_text()
    assert (await listed(api, f"/v1/operations/{receipt}"))["kind"] == "deletion"
    assert (await api.get("/v1/long-term-memory/leaving")).status_code == 404


@pytest.fixture
async def doomed(module_settings: Callable[..., Settings], redis_url: str) -> AsyncGenerator[tuple[str, httpx.AsyncClient, Outbox]]:
    """Start a server that has given up embedding one memory."""
    settings = module_settings(KEY_PREFIX=f"doomed{ULID()}")
    async with (
        open_runtime(settings, redis_url) as runtime,
        serving(create_app(settings, runtime)) as url,
        httpx.AsyncClient(base_url=url, timeout=30) as client,
    ):
        await client.post("/v1/long-term-memory/", json={"memories": [{"id": "doomed", "text": "Doomed", **NIGHT}]})
        said = {"user_id": "dora", "messages": [{"role": "user", "content": "Doomed"}]}
        await client.post("/v1/working-memory/night/messages", json=said)
        outbox = runtime.outbox
        while not (await outbox.backlog())[DueKind.MEMORY].dead:
            claims = await claim_kind(outbox, DueKind.MEMORY, limit=10, lease_seconds=0.001, max_attempts=2)
            members = [claim.member for claim in claims.claims]
            await outbox.begin_claims(DueKind.MEMORY, members, lease_seconds=0.001, max_attempts=2)
        yield url, client, outbox


@pytest.mark.parametrize("end", ["Try again", "Drop"])
async def test_dead_letter_shows_its_reason_and_is_replayed_or_dropped(
    end: str, new_page: Make, doomed: tuple[str, httpx.AsyncClient, Outbox]
) -> None:
    url, client, outbox = doomed
    page = await visited(new_page, url, "/jobs")
    await page.locator("td .problem, td.problem").get_by_role("link").click()
    await expect(page).to_have_url(f"{url}/console/jobs?tab=dead&kind=memory")
    await expect(page.locator(".change")).to_contain_text("no attempt ended")
    await expect(page.locator(".change")).to_contain_text("This memory is found by its words, but not by its meaning.")
    await page.locator(".change").get_by_role("link", name="night").click()
    await expect(page.locator(".chat")).to_contain_text("Doomed")
    await page.go_back()
    (dead,) = (await listed(client, "/v1/operations", state="dead"))["operations"]
    await page.get_by_role("link", name="Details").click()
    await expect(page.locator(".facts")).to_contain_text(dead["id"])
    await expect(page.locator(".facts")).to_contain_text(f"tries{dead['attempts']}")
    await page.go_back()
    await page.get_by_role("button", name=end).click()
    await expect(page.get_by_role("status")).to_be_visible()
    assert (await listed(client, "/v1/operations", state="dead"))["operations"] == []
    waiting = (await listed(client, "/v1/operations", kind="memory"))["operations"]
    assert bool(waiting) == (end == "Try again")
    if not waiting:
        return
    await page.goto(f"/console/jobs/{dead['id']}?open=1")
    await expect(page.get_by_role("heading", level=1)).to_contain_text("waiting")
    await page.get_by_role("link", name="Refresh").focus()
    claims = await claim_kind(outbox, DueKind.MEMORY, limit=10, lease_seconds=600, max_attempts=2)
    await expect(page.get_by_role("heading", level=1)).to_contain_text("running")
    await expect(page.get_by_role("link", name="Refresh")).to_be_focused()
    await outbox.end_claims(DueKind.MEMORY, claims.claims)
    await expect(page.get_by_role("heading", level=1)).to_contain_text("done")
    await expect(page.locator("[hx-get]")).to_have_count(0)


async def test_key_is_created_rotated_and_revoked(new_page: Make, guarded_url: str) -> None:
    page = await visited(new_page, guarded_url, "/keys")
    await page.get_by_label("API key").fill(ADMIN)
    await page.get_by_role("button", name="Log in").click()
    await page.get_by_label("What is it for?").fill("kitchen bot")
    await page.get_by_label("Users", exact=True).fill("ada, ben")
    await page.get_by_role("button", name="Create the key").click()
    first = await page.locator("#secret").inner_text()
    async with httpx.AsyncClient(base_url=guarded_url, headers={"x-api-key": ADMIN}) as operator:
        (key,) = [each for each in (await listed(operator, "/v1/auth/tokens"))["tokens"] if each["description"] == "kitchen bot"]
        assert (sorted(key["users"]), key["role"], key.get("namespaces")) == (["ada", "ben"], "write", None)
        assert first not in page.url
        await page.goto("/console/keys")
        await expect(page.locator("#secret")).to_have_count(0)
        line = page.locator(".keys > li", has_text="kitchen bot")
        await line.get_by_text("Rotate or revoke").click()
        await line.get_by_role("button", name="New secret").click()
        await expect(page.locator("#secret")).not_to_have_text(first)
        second = await page.locator("#secret").inner_text()
        search = {"user_id": {"eq": "ada"}}
        for secret, status in ((second, 200), (first, 200)):
            answer = await operator.post("/v1/long-term-memory/search", json=search, headers={"x-api-key": secret})
            assert answer.status_code == status
        await page.goto("/console/keys")
        await line.get_by_text("Rotate or revoke").click()
        await line.get_by_role("button", name="Revoke").click()
        await expect(page.get_by_role("status")).to_contain_text("Revoked")
        answer = await operator.post("/v1/long-term-memory/search", json=search, headers={"x-api-key": second})
        assert answer.status_code == 401
