"""Test exporting, erasing and importing a user's blocks, including under a different user id."""

from __future__ import annotations

import json
from typing import Any

import httpx
from ulid import ULID

from agent_memory.extensions.blocks.owners import BlockKeys
from agent_memory.features.jobs.erasure_orders import Erasure, ErasureOrders
from agent_memory.foundation.core.scope import DEFAULT_TENANT, Scope
from agent_memory.foundation.storage.keyspace import Keys
from agent_memory.runtime import Runtime
from agent_memory_worker.privacy.erase import erase
from tests.extensions.blocks.conftest import Api


async def export(server: httpx.AsyncClient, user: str) -> list[dict[str, Any]]:
    answer = await server.post(f"/v1/users/{user}/export")
    assert answer.status_code == 200
    return [json.loads(line) for line in answer.text.splitlines()]


async def restore(server: httpx.AsyncClient, user: str, lines: list[dict[str, Any]]) -> dict[str, Any]:
    body = "".join(json.dumps(line) + "\n" for line in lines)
    answer = await server.post(f"/v1/users/{user}/import", content=body, headers={"content-type": "application/x-ndjson"})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_blocks_are_exported_erased_and_imported_with_their_history(runtime: Runtime, server: httpx.AsyncClient, api: Api) -> None:
    user, agent = api.owner["user_id"], f"a{ULID()}"
    coach = api.of(user_id=user, agent_id=agent)
    helper, stranger = {"agent_id": f"h{ULID()}"}, {"user_id": f"s{ULID()}"}
    await coach.put("human", "我叫张三", description="Who he is.", limit=100)
    await coach.edit("human", "append", "是一名Python开发者")
    await coach.call("POST", "/human/undo", {})
    await coach.put("human", limit=200)
    await api.put("rules", "Be kind.", read_only=True)
    for target in (helper, stranger):
        await coach.call("POST", "/human/attach", target)
    await api.of(**stranger).put("theirs", "quartz")
    await api.of(**stranger).call("POST", "/theirs/attach", {"user_id": user})
    before = [await coach.call("GET", path) for path in ("/human", "/human/history")] + [await api.call("GET", "/rules")]

    lines = await export(server, user)
    blocks = [line for line in lines if line["kind"] == "block"]
    assert [(line["agent_id"], line["label"]) for line in blocks] == [(agent, "human"), (None, "rules")]
    assert stranger["user_id"] not in json.dumps(lines), "nobody else is named"
    assert "quartz" not in json.dumps(lines)

    await erase_user(runtime, user)
    await coach.call("GET", "/human", status=404)
    await coach.call("GET", "/human/history", status=404)
    assert await api.prompt(**helper) == await api.prompt(agent_id="nobody")
    assert (await api.of(**stranger).call("GET", "/theirs"))["attached_to"] == []
    assert await traces(runtime, user) == []

    report = await restore(server, user, lines)
    assert report["problems"] == []
    assert report["imported"]["block"] == 2
    after = [await coach.call("GET", path) for path in ("/human", "/human/history")] + [await api.call("GET", "/rules")]
    assert after[1:] == before[1:]
    before[0]["attached_count"] = 1
    before[0]["attached_to"] = [{"namespace": None, "user_id": None, **helper}]
    assert after[0] == before[0]
    assert "我叫张三" in (await api.prompt(**helper))[0]
    again = await restore(server, user, lines)
    assert (again["imported"], again["present"]["block"]) == ({}, 2)
    await coach.call("POST", "/human/undo", {"version": 3})
    assert (await coach.call("GET", "/human"))["value"] == "我叫张三\n是一名Python开发者"

    other = f"o{ULID()}"
    copied = await restore(server, other, lines)
    assert copied["problems"] == []
    assert await api.of(user_id=other, agent_id=agent).value("human") == "我叫张三"
    await api.of(user_id=other, agent_id=agent).edit("human", "rethink", "李四")
    assert "张三" in await coach.value("human")


async def test_agent_without_attached_blocks_leaves_no_owner_record(runtime: Runtime, server: httpx.AsyncClient, api: Api) -> None:
    keeper, helper = {"agent_id": f"k{ULID()}"}, {"agent_id": f"h{ULID()}"}
    await api.of(**keeper).put("own", "stays")
    ends = {
        "detached": lambda: api.call("POST", "/human/detach", helper),
        "deleted": lambda: api.call("DELETE", "/human"),
        "erased": lambda: erase_user(runtime, api.owner["user_id"]),
    }
    for end in ends.values():
        await api.put("human", "Name: Zoe")
        for target in (helper, keeper):
            await api.call("POST", "/human/attach", target)
        assert await noted(runtime, helper["agent_id"])
        await end()
        assert not await noted(runtime, helper["agent_id"])
        assert await noted(runtime, keeper["agent_id"]), "it has a block of its own"


async def noted(runtime: Runtime, agent_id: str) -> bool:
    key = BlockKeys(Keys(runtime.settings.redis.key_prefix).root).of_agent(DEFAULT_TENANT, agent_id)
    return bool(await runtime.client.exists(key))


async def test_import_refuses_forged_block_lines(server: httpx.AsyncClient, api: Api) -> None:
    await api.put("human", "Name: Ada")
    await api.edit("human", "append", "tea")
    await api.put("human", limit=50)
    user = api.owner["user_id"]
    lines = await export(server, user)
    header, end = lines[0], lines[-1]
    line = next(line for line in lines if line["kind"] == "block")
    changes = line["changes"]
    settings = {**changes[2], "settings": {"limit": [2000, "much"]}}
    forged = [
        {**line, "block": {**line["block"], "value": "another text"}},
        {**line, "changes": changes[1:]},
        {**line, "changes": [{**changes[0], "position": 4}, *changes[1:]]},
        {**line, "changes": [*changes[:2], settings]},
        {**line, "label": "a/b"},
        {**line, "block": {**line["block"], "limit": 10**9}},
    ]
    for number, bad in enumerate(forged):
        report = await restore(server, f"f{number}-{user}", [header, bad, end])
        assert report["imported"] == {}, bad
        assert len(report["problems"]) >= 1, bad


async def erase_user(runtime: Runtime, user: str) -> None:
    mark = await runtime[ErasureOrders].order_erasure(Scope(DEFAULT_TENANT), Erasure(DEFAULT_TENANT, None, user, None))
    await erase(runtime, mark.member)


async def traces(runtime: Runtime, text: str) -> list[str]:
    """Return the keys of blocks that contain a text."""
    found: list[str] = []
    async for key in runtime.client.scan_iter(match=f"{runtime.keys.root}bl*", count=1000):
        raw = await runtime.client.dump(key)
        if text.encode() in (raw or b""):
            found.append(key.decode())
    return found
