"""Test conversations and settings as sent by `@supermemory/tools` and plug-ins."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any
from uuid import uuid4

import httpx
import pytest

from agent_memory.foundation.core.scope import Principal, Role
from agent_memory.foundation.core.settings import load_settings
from agent_memory.interfaces.http.app import create_app
from agent_memory.runtime import open_runtime
from tests.compat.callers import ONE_AGENT, OWNER, READER, STRANGER, Callers
from tests.support.stack import working
from tests.support.waiting import wait_until


@pytest.fixture(scope="module")
async def callers(redis_url: str) -> AsyncGenerator[Callers]:
    settings = load_settings(KEY_PREFIX="sm-talks", MODEL_PROVIDER="local", EMBEDDING_PROVIDER="local", COMPAT_APIS="supermemory")
    async with open_runtime(settings, redis_url) as runtime, working(runtime):
        yield Callers(create_app(settings, runtime))


@pytest.fixture
def api(callers: Callers) -> httpx.AsyncClient:
    return callers(OWNER)


@pytest.fixture
def tag() -> str:
    return f"tag-{uuid4().hex[:8]}"


async def send(api: httpx.AsyncClient, tag: str, messages: list[dict[str, Any]], **fields: Any) -> dict[str, Any]:
    """Send a conversation for the container and return the response."""
    body = {"conversationId": f"{tag}-talk", "messages": messages, "containerTags": [tag], **fields}
    answer = await api.post("/v4/conversations", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def remembered(api: httpx.AsyncClient, tag: str) -> list[str]:
    """Return a container's memories once its conversation is done."""

    async def done() -> bool:
        return (await api.get(f"/v3/documents/{tag}-talk")).json()["status"] == "done"

    await wait_until(done, "the conversation is done")
    listed = (await api.post(f"/ns/{tag}/list/memories", json={"limit": 50})).json()["memories"]
    return sorted(memory["memory"] for memory in listed)


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


async def test_resent_longer_conversation_adds_only_new_messages(api: httpx.AsyncClient, tag: str) -> None:
    turns = [user("I keep bees in Leeds."), assistant("How many hives do you have?"), user("I have four hives."), assistant("Nice.")]
    for end in (1, 2, 4, 4, 3):
        answer = await send(api, tag, turns[:end])
        assert (answer["id"], answer["conversationId"]) == (f"{tag}-talk", f"{tag}-talk")
        assert answer["status"] in ("queued", "done")
    assert {"I keep bees in Leeds.", "I have four hives."} <= set(await remembered(api, tag))
    document = (await api.get(f"/v3/documents/{tag}-talk")).json()
    assert document["content"].splitlines() == [f"{turn['role']}: {turn['content']}" for turn in turns]
    assert (await send(api, tag, turns))["status"] == "done"


async def test_without_a_model_user_statements_become_conversation_memories(api: httpx.AsyncClient, tag: str) -> None:
    turns = [user("I keep bees in Leeds."), assistant("Bees in Leeds, lovely."), user("Which animals do I keep in Leeds?")]
    await send(api, tag, turns)
    assert await remembered(api, tag) == ["I keep bees in Leeds."]
    for path in ("/v4/search", "/v4/profile"):
        answer = (await api.post(path, json={"q": "Which animals do I keep in Leeds?", "containerTag": tag})).json()
        results = answer.get("searchResults", answer)["results"]
        assert [result["memory"] for result in results] == ["I keep bees in Leeds."]
    body = {"q": "bees in Leeds", "containerTags": [tag], "includeFullDocs": True}
    (document,) = (await api.post("/v3/search", json=body)).json()["results"]
    assert "assistant: Bees in Leeds, lovely." in document["content"], "the document has all that was said"


async def test_new_messages_are_added_to_an_existing_conversation(api: httpx.AsyncClient, tag: str) -> None:
    await send(api, tag, [user("I live in Leeds."), assistant("Lovely.")])
    await send(api, tag, [user("I play the cello.")])
    assert {"I live in Leeds.", "I play the cello."} <= set(await remembered(api, tag))


async def test_concurrent_sends_of_a_conversation_store_it_once(api: httpx.AsyncClient, tag: str) -> None:
    turns = [user(f"My locker number {number} is {number * 111}.") for number in range(5)]
    await asyncio.gather(*(send(api, tag, turns[: 1 + number % 5]) for number in range(15)))
    await send(api, tag, turns)
    assert await remembered(api, tag) == sorted(turn["content"] for turn in turns)


async def test_repeated_messages_of_a_conversation_are_all_stored(api: httpx.AsyncClient, tag: str) -> None:
    turns = [user("Yes, please."), assistant("Done."), user("Yes, please."), assistant("Done.")]
    await send(api, tag, turns[:2])
    await send(api, tag, turns)
    content = (await api.get(f"/v3/documents/{tag}-talk")).json()["content"]
    assert content.splitlines() == [f"{turn['role']}: {turn['content']}" for turn in turns]


async def test_texts_are_stored_despite_images_and_tool_calls(api: httpx.AsyncClient, tag: str) -> None:
    picture = {"type": "image_url", "imageUrl": {"url": "https://example.com/hive.png"}}
    call = {"id": "c1", "type": "function", "function": {"name": "weigh", "arguments": "{}"}}
    turns: list[dict[str, Any]] = [
        {"role": "user", "content": [{"type": "text", "text": "My red hive weighs 40 kg."}, picture]},
        {"role": "user", "content": [picture]},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "content": "40", "tool_call_id": "c1"},
    ]
    await send(api, tag, turns, metadata={"place": "garden"})
    await send(api, tag, turns, metadata={"place": "garden", "turns": 4})
    assert "My red hive weighs 40 kg." in await remembered(api, tag)
    results = (await api.post("/v4/search", json={"q": "red hive", "containerTag": tag})).json()["results"]
    assert results[0]["metadata"] == {"place": "garden"}
    assert (await api.get(f"/v3/documents/{tag}-talk")).json()["content"].count("40 kg") == 1
    (session,) = (await api.get("/v1/working-memory/", params={"user_id": tag, "identities": True})).json()["identities"]
    stored = (await api.get(f"/v1/working-memory/{session.pop('session_id')}", params=session)).json()["messages"]
    assert [message.get("content_parts", [])[-1:] for message in stored[:2]] == [[picture], [picture]]


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        ({"messages": [{"role": "user", "content": "x"}]}, 400, "conversationId"),
        ({"conversationId": "c", "messages": []}, 400, "messages"),
        ({"conversationId": "c", "messages": [{"role": "user", "content": " "}]}, 400, "messages"),
        ({"conversationId": "c", "messages": [{"content": "x"}]}, 400, "role"),
        (
            {"conversationId": "c", "messages": [{"role": "user", "content": [{"type": "image_url", "imageUrl": {"url": "x"}}]}]},
            501,
            "parts",
        ),
    ],
)
async def test_invalid_conversation_is_rejected_with_the_field_name(
    api: httpx.AsyncClient, body: dict[str, Any], status: int, field: str
) -> None:
    answer = await api.post("/v4/conversations", json=body)
    assert answer.status_code == status, answer.text
    assert field in answer.json()["error"]


async def test_conversation_can_be_deleted_as_a_document(api: httpx.AsyncClient, tag: str) -> None:
    await send(api, tag, [user("I keep bees."), assistant("Nice.")])
    await remembered(api, tag)
    assert (await api.delete(f"/v3/documents/{tag}-talk")).status_code == 204
    assert (await api.post(f"/ns/{tag}/list/memories", json={})).json()["memories"] == []


async def test_memory_can_be_forgotten_by_its_search_result_id(api: httpx.AsyncClient, tag: str) -> None:
    await send(api, tag, [user("I keep bees in Leeds."), user("My dentist is Dr. Fox.")])
    await remembered(api, tag)
    hit = (await api.post("/v4/search", json={"q": "bees", "containerTag": tag})).json()["results"][0]
    assert (await api.request("DELETE", "/ns/another/document", json={"ids": [hit["id"]]})).json()["count"] == 0
    assert (await api.delete(f"/v3/documents/{hit['id']}")).status_code == 204
    assert await remembered(api, tag) == ["My dentist is Dr. Fox."]
    assert (await api.delete(f"/v3/documents/{hit['id']}")).status_code == 404


async def test_settings_are_stored_for_the_tenant_and_returned(callers: Callers) -> None:
    owner = callers(OWNER)
    sent = {"shouldLLMFilter": True, "filterPrompt": "Keep what matters.", "excludeItems": ["drafts"], "unknown": {"x": None}}
    answer = await owner.patch("/v3/settings", json=sent)
    assert (answer.status_code, answer.json()) == (200, {"orgId": "t1", "orgSlug": "t1", "updated": sent})
    await owner.patch("/v3/settings", json={"filterPrompt": None, "chunkSize": 512})
    stored = {**sent, "filterPrompt": None, "chunkSize": 512}
    assert (await owner.get("/v3/settings")).json() == stored
    assert (await callers(STRANGER).get("/v3/settings")).json() == {}
    assert (await callers(READER).patch("/v3/settings", json={"chunkSize": 1})).status_code == 403
    assert (await callers(ONE_AGENT).patch("/v3/settings", json={"chunkSize": 1})).status_code == 403
    # A key limited to one user has its own settings, because the plug-in requires them.
    one = callers(Principal("t1", "ida's", Role.WRITE, users=frozenset({"ida"})))
    assert (await one.patch("/v3/settings", json={"chunkSize": 1})).status_code == 200
    assert (await one.get("/v3/settings")).json() == {"chunkSize": 1}
    assert (await owner.get("/v3/settings")).json() == stored
