"""Test that reusing message ids does not lose messages or memories, and that corrections remain."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import httpx
import pytest

from agent_memory.interfaces.http.app import create_app
from tests.support.rig import Rig

DENTIST, PLUMBER = "My dentist is Dr Kim in Bergen", "My plumber is Joe Blake"
PATH = "/v1/working-memory/s"


@pytest.fixture
async def http(rig: Rig) -> AsyncGenerator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(create_app(rig.settings, rig.rt))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        yield client


def message(text: str, name: str = "msg-1") -> dict[str, Any]:
    return {"id": name, "role": "user", "content": text}


async def append(http: httpx.AsyncClient, *messages: dict[str, Any]) -> Any:
    answer = await http.post(f"{PATH}/messages", json={"user_id": "ana", "messages": messages})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def put(http: httpx.AsyncClient, *messages: dict[str, Any]) -> Any:
    answer = await http.put(PATH, json={"user_id": "ana", "messages": messages})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def shown(http: httpx.AsyncClient) -> list[tuple[str, str]]:
    messages = (await http.get(PATH, params={"user_id": "ana"})).json()["messages"]
    return [(each["id"], each["content"]) for each in messages]


async def remembered(http: httpx.AsyncClient, rig: Rig) -> list[str]:
    await rig.work()
    return sorted(memory["text"] for memory in (await http.post("/v1/long-term-memory/search", json={"user_id": "ana"})).json()["memories"])


async def test_append_with_a_reused_id_and_other_text_adds_a_new_message(rig: Rig, http: httpx.AsyncClient) -> None:
    await append(http, message(DENTIST))
    assert await remembered(http, rig) == [DENTIST]
    second = await append(http, message(PLUMBER))
    (notice,) = second["notices"]
    (_, (other, _)) = await shown(http)
    assert other != "msg-1"
    assert notice.startswith("messages.0.id: ")
    assert other in notice
    assert await remembered(http, rig) == [DENTIST, PLUMBER]
    for text in (DENTIST, PLUMBER):
        assert (await append(http, message(text)))["appended"] == 0
    assert await shown(http) == [("msg-1", DENTIST), (other, PLUMBER)]


async def test_repeated_ids_in_one_request_lose_no_message(rig: Rig, http: httpx.AsyncClient) -> None:
    await append(http, message(DENTIST), message(PLUMBER))
    first = await shown(http)
    assert [text for _, text in first] == [DENTIST, PLUMBER]
    assert await remembered(http, rig) == [DENTIST, PLUMBER]
    await put(http, message(DENTIST), message(PLUMBER))
    assert await shown(http) == first
    await put(http, message(PLUMBER))
    assert await shown(http) == first[1:]
    assert await remembered(http, rig) == [DENTIST, PLUMBER]


async def test_put_that_corrects_a_message_updates_its_memory_and_keeps_the_history(rig: Rig, http: httpx.AsyncClient) -> None:
    await put(http, message(DENTIST))
    assert await remembered(http, rig) == [DENTIST]
    corrected = await put(http, message("My dentist is Dr Kim in Oslo"))
    assert "notices" not in corrected
    assert await shown(http) == [("msg-1", "My dentist is Dr Kim in Oslo")]
    assert await remembered(http, rig) == ["My dentist is Dr Kim in Oslo"]
    (memory,) = (await http.post("/v1/long-term-memory/search", json={"user_id": "ana"})).json()["memories"]
    history = (await http.get(f"/v1/long-term-memory/{memory['id']}/history")).json()
    assert DENTIST in str(history)


async def test_put_that_corrects_a_message_as_it_was_read_updates_its_memory(rig: Rig, http: httpx.AsyncClient) -> None:
    await put(http, message(DENTIST), message(PLUMBER, "msg-2"))
    assert await remembered(http, rig) == [DENTIST, PLUMBER]
    read = (await http.get("/v1/working-memory/s", params={"user_id": "ana"})).json()["messages"]
    assert [each["discrete_memory_extracted"] for each in read] == ["t", "t"]
    read[0]["content"] = "My dentist is Dr Kim in Oslo"
    await put(http, *read, {**read[1], "id": "msg-3", "content": "Kept apart by its flag"})
    assert await remembered(http, rig) == ["My dentist is Dr Kim in Oslo", PLUMBER]


async def test_put_that_reverts_a_correction_restores_the_memory_text(rig: Rig, http: httpx.AsyncClient) -> None:
    for text in (DENTIST, PLUMBER, DENTIST, PLUMBER):
        await put(http, message(text))
        await put(http, message(text))
        assert await shown(http) == [("msg-1", text)]
        assert await remembered(http, rig) == [text]


async def test_deleted_memory_is_not_restored_when_a_put_repeats_its_message(rig: Rig, http: httpx.AsyncClient) -> None:
    both = (message(DENTIST), message(PLUMBER, "msg-2"))
    await put(http, *both)
    assert await remembered(http, rig) == [DENTIST, PLUMBER]
    memories = (await http.post("/v1/long-term-memory/search", json={"user_id": "ana"})).json()["memories"]
    await http.delete("/v1/long-term-memory", params={"memory_ids": [each["id"] for each in memories if each["text"] == DENTIST]})
    await put(http, both[1])
    await put(http, *both)
    assert await remembered(http, rig) == [PLUMBER]


async def test_append_to_a_recreated_session_keeps_memories_of_the_deleted_one(rig: Rig, http: httpx.AsyncClient) -> None:
    """A new message with the same id must neither replace the old memory nor be lost."""
    await append(http, message(DENTIST), message("My cat is called Tom", "msg-2"))
    assert len(await remembered(http, rig)) == 2
    await http.delete(PATH, params={"user_id": "ana"})
    again = await append(http, message(PLUMBER), message("My cat is called Tom", "msg-2"))
    assert len(again["notices"]) == 1
    await append(http, message("My boat is red"))
    names = [name for name, _ in await shown(http)]
    assert len(set(names)) == 3
    assert await remembered(http, rig) == sorted(["My boat is red", "My cat is called Tom", DENTIST, PLUMBER])
    before = await shown(http)
    assert (await append(http, message(PLUMBER), message("My boat is red")))["appended"] == 0
    await http.delete(PATH, params={"user_id": "ana"})
    for text in (PLUMBER, "My boat is red", DENTIST):
        await append(http, message(text))
    assert {text: name for name, text in await shown(http) if text != DENTIST}.items() <= {text: name for name, text in before}.items()
    assert await remembered(http, rig) == sorted(["My boat is red", "My cat is called Tom", DENTIST, PLUMBER])


async def test_message_sent_again_to_a_recreated_session_restores_no_corrected_or_deleted_memory(rig: Rig, http: httpx.AsyncClient) -> None:
    sent = (message(DENTIST), message(PLUMBER, "msg-2"))
    await append(http, *sent)
    assert len(await remembered(http, rig)) == 2
    memories = (await http.post("/v1/long-term-memory/search", json={"user_id": "ana"})).json()["memories"]
    ids = {each["text"]: each["id"] for each in memories}
    edited = await http.patch(f"/v1/long-term-memory/{ids[DENTIST]}", json={"text": "Ana's dentist is Dr Li"})
    assert edited.status_code == 200
    await http.delete("/v1/long-term-memory", params={"memory_ids": [ids[PLUMBER]]})
    for _ in range(2):
        await http.delete(PATH, params={"user_id": "ana"})
        await append(http, *sent)
        assert await shown(http) == [("msg-1", DENTIST), ("msg-2", PLUMBER)]
        assert await remembered(http, rig) == ["Ana's dentist is Dr Li"]


async def test_unknown_chat_role_is_reported_in_notices(http: httpx.AsyncClient) -> None:
    answered = await append(http, {"role": "robot", "content": "I rust"}, {"role": "assistant", "content": "Oil helps"})
    assert ["'robot'" in notice for notice in answered["notices"]] == [True]
    assert answered["notices"] == (await put(http, {"role": "robot", "content": "I rust"}))["notices"]
