"""Test memory blocks over HTTP: create, edit, undo, versions, limits, and error messages."""

from __future__ import annotations

import asyncio

from tests.extensions.blocks.conftest import Api


async def test_created_block_can_be_read(api: Api) -> None:
    made = await api.put("human", "Name: Ada", description="Who she is.", limit=100)
    read = await api.call("GET", "/human")
    assert read == made
    assert (read["value"], read["chars"], read["limit"], read["version"]) == ("Name: Ada", 9, 100, 1)
    assert read["tokens"] > 1
    assert read["user_id"] == api.owner["user_id"]
    assert read["agent_id"] is None
    assert [block["label"] for block in (await api.call("GET", ""))["blocks"]] == ["human"]
    missing = await api.call("GET", "/persona", status=404)
    assert "no block 'persona'" in missing["detail"]


async def test_put_keeps_fields_it_does_not_name(api: Api) -> None:
    await api.put("human", "Name: Ada", description="Who she is.", limit=100)
    changed = await api.put("human", read_only=True)
    assert (changed["value"], changed["description"], changed["limit"], changed["read_only"]) == ("Name: Ada", "Who she is.", 100, True)
    again = await api.call("PUT", "/human", {"read_only": True})
    assert again["change"] is None
    assert again["block"]["version"] == 2


async def test_each_edit_operation_describes_its_change(api: Api) -> None:
    await api.put("human", "Name: Ada\nCity: Porto")
    appended = await api.edit("human", "append", "Tea, no coffee")
    assert appended["block"]["value"] == "Name: Ada\nCity: Porto\nTea, no coffee"
    assert appended["change"]["said"] == "appended 15 characters"
    replaced = await api.edit("human", "replace", "Lisbon", old_content="Porto")
    change = replaced["change"]
    assert (change["removed"], change["inserted"], change["position"], change["version"]) == ("Porto", "Lisbon", 16, 3)
    inserted = await api.edit("human", "insert", "Née Byron — ✓", line=2)
    assert inserted["block"]["value"].split("\n") == ["Name: Ada", "Née Byron — ✓", "City: Lisbon", "Tea, no coffee"]
    behind = await api.edit("human", "insert", "Last", line=99)
    assert behind["block"]["value"].endswith("coffee\nLast")
    whole = await api.edit("human", "rethink", "Ada of Lisbon, tea.")
    assert whole["block"]["value"] == "Ada of Lisbon, tea."
    assert (await api.edit("human", "replace", "", old_content=", tea"))["block"]["value"] == "Ada of Lisbon."


async def test_replace_requires_exactly_one_match(api: Api) -> None:
    await api.put("human", "Name: Ada\nHer dog is called Rex\ntea tea")
    unknown = await api.edit("human", "replace", "x", old_content="The dog is named Rex", status=409)
    assert unknown["nearest"] == "Her dog is called Rex"
    assert "Line 2" in unknown["detail"]
    twice = await api.edit("human", "replace", "x", old_content="tea", status=409)
    assert "more than once" in twice["detail"]
    await api.put("empty")
    assert "append instead" in (await api.edit("empty", "replace", "x", old_content="tea", status=409))["detail"]


async def test_full_block_error_names_size_limit_and_removable_lines(api: Api) -> None:
    await api.put("human", f"short\n{'long ' * 10}end", limit=70)
    full = await api.edit("human", "append", "x" * 20, status=409)
    assert full["code"] == "block_full"
    assert (full["field"], full["size"], full["limit"], full["unit"]) == ("limit", 80, 70, "characters")
    assert "10 more than its limit of 70" in full["detail"]
    assert "shorten the text (you could delete line 2 (53 characters: 'long" in full["detail"]
    assert full["detail"].endswith("or raise `limit`")
    assert await api.value("human") == f"short\n{'long ' * 10}end"
    await api.edit("human", "replace", "", old_content=f"{'long ' * 10}end")
    assert (await api.edit("human", "append", "x" * 20))["block"]["chars"] == 26
    assert (await api.call("PUT", "/human", {"limit": 20}, status=409))["code"] == "block_full"
    assert (await api.call("PUT", "/new", {"value": "x" * 11, "limit": 10}, status=409))["code"] == "block_full"
    await api.call("GET", "/new", status=404)


async def test_a_limit_of_tokens_is_counted_exactly(api: Api) -> None:
    made = await api.put("human", "plums and tea " * 10, limit_tokens=60)
    room = 60 - made["tokens"]
    for _ in range(room // 4):
        made = (await api.edit("human", "append", "tea"))["block"]
    assert made["tokens"] <= 60
    full = await api.edit("human", "append", "quartz " * 40, status=409)
    assert (full["unit"], full["limit"]) == ("tokens", 60)
    assert full["size"] > 60
    assert (await api.call("PUT", "/human", {"limit_tokens": 5}, status=409))["unit"] == "tokens"
    shorter = await api.edit("human", "rethink", "tea")
    assert shorter["block"]["tokens"] < 5
    assert (await api.put("human", limit_tokens=0))["limit_tokens"] is None


async def test_a_read_only_block_refuses_edits(api: Api) -> None:
    await api.put("rules", "Be kind.", read_only=True)
    for refused in (
        await api.edit("rules", "append", "Be rude.", status=403),
        await api.call("POST", "/rules/undo", {}, status=403),
    ):
        assert "read-only" in refused["detail"]
    assert await api.value("rules") == "Be kind."
    await api.put("rules", "Be very kind.")
    await api.put("rules", read_only=False)
    await api.edit("rules", "append", "Be brief.")


async def test_block_versions_are_etags(api: Api) -> None:
    await api.put("human", "one")
    answer = await api.http.get("/v1/blocks/human", params=api.owner)
    assert answer.headers["etag"] == '"1"'
    await api.call("PUT", "/human", {"value": "two"}, If_Match='"1"')
    stale = await api.call("PATCH", "/human", {"operation": "append", "content": "x"}, If_Match='"1"', status=412)
    assert stale["current"] == 2
    await api.call("PUT", "/human", {"value": "three"}, If_None_Match="*", status=412)
    await api.call("PUT", "/other", {"value": "three"}, If_Match="*", status=412)
    await api.call("DELETE", "/human", If_Match='"1"', status=412)
    await api.call("DELETE", "/human", If_Match='"2"')
    assert (await api.call("DELETE", "/human"))["status"] == "ok, the block did not exist"


async def test_newest_change_and_its_undo_can_be_undone(api: Api) -> None:
    await api.put("human", "Name: Ada")
    await api.edit("human", "append", "Likes tea")
    undone = await api.call("POST", "/human/undo", {})
    assert undone["block"]["value"] == "Name: Ada"
    assert undone["change"]["undoes"] == 2
    assert (await api.call("POST", "/human/undo", {}))["block"]["value"] == "Name: Ada\nLikes tea"


async def test_earlier_change_is_undone_unless_a_later_change_overwrote_it(api: Api) -> None:
    await api.put("human", "Name: Ada\nCity: Porto", description="old")
    await api.edit("human", "replace", "Lisbon", old_content="Porto")
    await api.put("human", description="new", limit=50)
    await api.edit("human", "append", "Likes tea")
    assert (await api.call("POST", "/human/undo", {"version": 2}))["block"]["value"] == "Name: Ada\nCity: Porto\nLikes tea"
    settings = await api.call("POST", "/human/undo", {"version": 3})
    assert (settings["block"]["description"], settings["block"]["limit"]) == ("old", 2000)
    overtaken = await api.call("POST", "/human/undo", {"version": 2}, status=409)
    assert "undo them first" in overtaken["detail"]
    await api.call("POST", "/human/undo", {"version": 40}, status=404)


async def test_history_lists_every_change(api: Api) -> None:
    await api.put("human", "Name: Ada")
    await api.edit("human", "append", "Likes tea")
    await api.put("human", limit=50)
    history = await api.call("GET", "/human/history")
    assert history["base"] == ""
    assert [change["operation"] for change in history["changes"]] == ["put", "append", "put"]
    assert history["changes"][2]["settings"] == {"limit": [2000, 50]}
    await api.call("DELETE", "/human")
    await api.call("GET", "/human/history", status=404)
    await api.put("human", "anew")
    assert len((await api.call("GET", "/human/history"))["changes"]) == 1


async def test_concurrent_edits_are_all_applied(api: Api) -> None:
    await api.put("notes", limit=5000, limit_tokens=4000)
    edits = [api.edit("notes", "append", f"note {number}") for number in range(40)]
    versions = sorted([answer["block"]["version"] for answer in await asyncio.gather(*edits)])
    assert versions == list(range(2, 42))
    assert sorted((await api.value("notes")).split("\n")) == sorted(f"note {number}" for number in range(40))


async def test_block_is_visible_only_to_its_exact_owner(api: Api) -> None:
    user = api.owner["user_id"]
    owners = [
        {"user_id": user},
        {"agent_id": user},
        {"user_id": user, "agent_id": user},
        {"namespace": user},
        {"user_id": user, "namespace": "n"},
    ]
    for number, owner in enumerate(owners):
        await api.of(**owner).put("human", f"of {number}")
    for number, owner in enumerate(owners):
        assert await api.of(**owner).value("human") == f"of {number}"
        assert len((await api.of(**owner).call("GET", ""))["blocks"]) == 1
    assert "name the owner" in (await api.of().call("GET", "/human", status=400))["detail"]


async def test_invalid_block_requests_are_rejected(api: Api) -> None:
    await api.put("human", "x")
    for body in (
        {"operation": "replace", "content": "y"},
        {"operation": "append", "content": "y", "old_content": "x"},
        {"operation": "insert", "content": "y"},
        {"operation": "append", "content": ""},
        {"operation": "turn", "content": "y"},
    ):
        await api.call("PATCH", "/human", body, status=422)
    await api.call("PUT", f"/{'l' * 65}", {}, status=422)
    await api.call("PUT", "/human", {"limit": 20_001}, status=422)
    await api.call("PATCH", "/none", {"operation": "append", "content": "y"}, status=404)


async def test_owner_may_have_at_most_64_blocks(api: Api) -> None:
    for number in range(64):
        await api.put(f"b{number}")
    assert "64 blocks" in (await api.call("PUT", "/b64", {}, status=409))["detail"]
