"""Test forgetting over HTTP. Error responses identify the field and the fix.

Callers cannot forget, see or restore other users' memories.
"""

from __future__ import annotations

import httpx

from tests.features.access.conftest import Guarded

PATH = "/v1/memory/forget"
ANA = {"user_id": "ana"}


async def store(caller: httpx.AsyncClient, text: str, name: str, **owner: str) -> None:
    answer = await caller.post("/v1/long-term-memory/", json={"memories": [{"id": name, "text": text, **owner}]})
    assert answer.status_code == 200, answer.text


async def listed(caller: httpx.AsyncClient, user: str) -> list[str]:
    answer = await caller.post("/v1/long-term-memory/search", json={"text": "", "user_id": {"eq": user}})
    return [memory["text"] for memory in answer.json()["memories"]]


async def test_forget_requires_user_id_unless_the_caller_has_exactly_one_user(guarded: Guarded) -> None:
    everybody = await guarded.caller("forgetful", "admin")
    ana = await guarded.caller("forgetful", "write", users=["ana"])
    for name, user in (("a", "ana"), ("b", "bob")):
        await store(everybody, "User is allergic to peanuts", name, user_id=user)
    answer = await everybody.post(PATH, json={"text": "I am allergic to peanuts"})
    assert answer.status_code == 422
    assert "user_id" in answer.text
    assert (await everybody.post(PATH, json={"text": "x", "ids": ["a"], **ANA})).status_code == 422
    assert (await everybody.post(PATH, json={**ANA})).status_code == 422
    assert (await ana.post(PATH, json={"text": "I am allergic to peanuts", "user_id": "bob"})).status_code == 403
    gone = await ana.post(PATH, json={"text": "I am allergic to peanuts"})
    assert gone.json()["forgotten"] == {"facts": 1}
    assert await listed(everybody, "ana") == []
    assert await listed(everybody, "bob") == ["User is allergic to peanuts"]


async def test_forget_and_undo_ignore_ids_of_other_users(guarded: Guarded) -> None:
    everybody = await guarded.caller("forgetful-ids", "admin")
    await store(everybody, "User is allergic to peanuts", "c", user_id="bob")
    ana = await guarded.caller("forgetful-ids", "write", users=["ana"])
    answer = await ana.post(PATH, json={"ids": ["c"]})
    assert answer.json()["matches"] == []
    mine = await everybody.post(PATH, json={"ids": ["c"]})
    receipt = mine.json()["receipt_id"]
    assert (await ana.post(f"{PATH}/{receipt}/undo")).status_code == 404
    reader = await guarded.caller("forgetful-ids", "read")
    coach = await guarded.caller("forgetful-ids", "write", agents=["coach"])
    stranger = await guarded.caller("other-tenant", "admin")
    assert [(await each.get(f"{PATH}/{receipt}")).status_code for each in (ana, reader, coach, stranger)] == [404, 403, 404, 404]
    shown = [(await everybody.get(f"{PATH}/{receipt}")).json()]
    first, second = [await everybody.post(f"{PATH}/{receipt}/undo") for _ in range(2)]
    assert first.json() == second.json() == {"receipt_id": receipt, "restored": {"memories": 1, "messages": 0, "kept_newer": 0}}
    assert await listed(everybody, "bob") == ["User is allergic to peanuts"]
    shown.append((await everybody.get(f"{PATH}/{receipt}")).json())
    assert [(each["state"], [item["text"] for item in each["items"]]) for each in shown] == [
        ("applied", ["User is allergic to peanuts"]),
        ("undone", ["User is allergic to peanuts"]),
    ]
