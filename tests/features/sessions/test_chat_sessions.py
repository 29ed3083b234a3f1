"""Test sessions of chat API messages over HTTP.

Messages are returned unchanged, even in prompts, and windows never split tool calls.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from typing import Any

import httpx
import pytest

from agent_memory.features.sessions.store import SessionStore
from agent_memory.foundation.core.scope import SessionRef
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.interfaces.http.app import create_app
from agent_memory_client import MemoryAPIClient, MemoryClientConfig
from agent_memory_client.models import MemoryMessage, WorkingMemory, prompt_messages
from agent_memory_worker.sessions.summarize import summarize_session
from tests.interfaces.client.models.test_wire_chat_messages import CHATS
from tests.support.rig import SCOPE, MakeRig, Rig

EVERY = [message for chat in CHATS.values() for message in chat]
SPACE = {"user_id": "ada"}


def call(name: str) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": [{"id": name, "type": "function", "function": {"name": "look"}}]}


def answer(name: str, text: str = "seen") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": name, "content": text}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


@pytest.fixture
async def http(rig: Rig) -> AsyncGenerator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(create_app(rig.settings, rig.rt))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        yield client


@pytest.fixture
async def client(rig: Rig) -> AsyncGenerator[MemoryAPIClient]:
    transport = httpx.ASGITransport(create_app(rig.settings, rig.rt))
    async with MemoryAPIClient(MemoryClientConfig(base_url="http://127.0.0.1"), transport=transport) as made:
        yield made


async def ok(answered: httpx.Response) -> Any:
    assert answered.status_code == 200, answered.text
    return answered.json()


async def put(http: httpx.AsyncClient, messages: list[dict[str, Any]], session: str = "s") -> Any:
    return await ok(await http.put(f"/v1/working-memory/{session}", json={"messages": messages, **SPACE}))


async def read(http: httpx.AsyncClient, session: str = "s", **params: Any) -> list[dict[str, Any]]:
    return (await ok(await http.get(f"/v1/working-memory/{session}", params={**SPACE, **params})))["messages"]


def chat(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Convert the messages in a response to chat format."""
    return [MemoryMessage.model_validate(message).to_chat() for message in messages]


async def test_put_session_is_read_back_unchanged(http: httpx.AsyncClient) -> None:
    stored = await put(http, EVERY)
    found = await read(http)
    assert chat(stored["messages"]) == chat(found) == EVERY
    assert all(isinstance(message["content"], str) for message in (*stored["messages"], *found))


async def test_appended_messages_are_read_back_unchanged(client: MemoryAPIClient) -> None:
    await client.append_messages("s", EVERY, user_id="ada")
    session = await client.get_working_memory("s", "ada")
    assert [message.to_chat() for message in session.messages] == EVERY
    # A PUT of the response changes nothing.
    await client.put_working_memory("s", session, "ada")
    assert [message.to_chat() for message in (await client.get_working_memory("s", "ada")).messages] == EVERY


async def test_prompt_shows_chat_messages_unchanged(http: httpx.AsyncClient, client: MemoryAPIClient) -> None:
    await put(http, EVERY)
    body = {"query": "And now?", "session": {"session_id": "s", **SPACE}}
    prompt = await ok(await http.post("/v1/memory/prompt", json=body))
    # Unknown roles are shown as the assistant's.
    assert {message["role"] for message in prompt["messages"]} == {"user", "assistant"}
    assert all(isinstance(message["content"]["text"], str) for message in prompt["messages"])
    wanted = [*EVERY, {"role": "user", "content": "And now?"}]
    assert prompt_messages(prompt) == wanted
    answered = await client.memory_prompt("And now?", session_id="s", user_id="ada", long_term_search=False)
    assert answered.to_openai() == answered.to_model().to_openai() == wanted


async def test_repeated_append_adds_nothing_but_other_calls_are_a_new_message(client: MemoryAPIClient) -> None:
    one = [message | {"id": f"m{place}"} for place, message in enumerate([call("a"), answer("a")])]
    assert (await client.append_messages("s", one)).appended == 2
    assert (await client.append_messages("s", one)).appended == 0
    assert (await client.append_messages("s", [call("b") | {"id": "m0"}])).appended == 1


async def test_repeated_put_without_ids_keeps_the_message_ids(http: httpx.AsyncClient) -> None:
    messages = [call("a"), answer("a"), call("b"), answer("b")]
    first, again = await put(http, messages), await put(http, messages)
    ids = [message["id"] for message in first["messages"]]
    assert [message["id"] for message in again["messages"]] == ids
    assert len(set(ids)) == 4


async def test_text_only_client_puts_a_session_back_without_losing_fields(http: httpx.AsyncClient) -> None:
    known = {"role", "content", "id", "created_at", "persisted_at", "discrete_memory_extracted"}
    await put(http, EVERY)
    texts = [{name: value for name, value in message.items() if name in known} for message in await read(http)]
    answered = await put(http, [*texts, user("thanks")])
    assert chat(answered["messages"]) == chat(await read(http)) == [*EVERY, user("thanks")]


async def test_new_empty_message_is_refused(http: httpx.AsyncClient) -> None:
    await put(http, [user("hi")])
    bodies = {"messages": [user("hi"), {"role": "assistant", "content": "", "id": "new"}], **SPACE}
    for answered in (await http.put("/v1/working-memory/s", json=bodies), await http.post("/v1/working-memory/s/messages", json=bodies)):
        assert answered.status_code == 422
        assert answered.json()["detail"][0]["loc"] == ["body", "messages", 1, "content"]
    assert chat(await read(http)) == [user("hi")]


TALK = [user("a"), call("x"), answer("x"), user("b"), call("y"), answer("y", "one"), user("c")]


@pytest.mark.parametrize(
    ("limit", "first"), [(1, 6), (2, 6), (3, 4), (4, 3), (5, 3), (6, 1), (7, 0), (20, 0)], ids=lambda value: str(value)
)
async def test_recent_messages_limit_keeps_tool_calls_whole(http: httpx.AsyncClient, limit: int, first: int) -> None:
    await put(http, TALK)
    assert chat(await read(http, recent_messages_limit=limit)) == TALK[first:]


async def test_recent_messages_limit_includes_the_call_however_far_back(http: httpx.AsyncClient) -> None:
    calls = call("z0") | {"tool_calls": [{"id": f"z{number}"} for number in range(40)]}
    answers = [answer(f"z{number}", str(number)) for number in range(40)]
    await put(http, [user("a"), calls, *answers])
    assert chat(await read(http, recent_messages_limit=1)) == [calls, *answers]


async def test_window_smaller_than_the_last_tool_calls_shows_them_whole(http: httpx.AsyncClient) -> None:
    calls = call("z0") | {"tool_calls": [{"id": f"z{number}"} for number in range(40)]}
    answers = [answer(f"z{number}", str(number)) for number in range(40)]
    await put(http, [user("a"), user("b"), calls, *answers])
    for window in (1, 60, 300):
        assert chat(await read(http, context_window_max=window)) == [calls, *answers]
        body = {"query": "q", "session": {"session_id": "s", "context_window_max": window, **SPACE}}
        assert prompt_messages(await ok(await http.post("/v1/memory/prompt", json=body)))[:-1] == [calls, *answers]


@pytest.mark.parametrize("limit", [1, 5])
async def test_orphaned_tool_answers_are_left_out_at_the_start(http: httpx.AsyncClient, limit: int) -> None:
    await put(http, [answer("x", str(number)) for number in range(30)] + [user("a")])
    assert chat(await read(http, recent_messages_limit=limit)) == [user("a")]
    assert chat(await read(http, context_window_max=30)) == [user("a")]


async def test_context_window_keeps_tool_calls_whole(http: httpx.AsyncClient) -> None:
    talk = [user("a"), call("x"), answer("x", "word " * 50), user("b")]
    await put(http, talk)
    sizes = [len(await read(http, context_window_max=window)) for window in range(1, 160)]
    assert set(sizes) == {1, 3, 4}
    assert sizes == sorted(sizes)


async def test_prompt_with_a_token_budget_keeps_tool_calls_whole(http: httpx.AsyncClient) -> None:
    talk = [user("a"), call("x"), answer("x", "word " * 50), user("b")]
    await put(http, talk)
    seen: set[int] = set()
    for most in range(64, 220, 4):
        body = {"query": "q", "session": {"session_id": "s", **SPACE}, "max_tokens": most}
        shown = prompt_messages(await ok(await http.post("/v1/memory/prompt", json=body)))
        assert shown[:-1] == talk[len(talk) - len(shown) + 1 :]
        seen.add(len(shown) - 1)
    assert seen == {1, 3, 4}


async def test_summary_covers_tool_calls_together_with_their_answers(make_rig: MakeRig) -> None:
    async with make_rig(None) as rig:
        transport = httpx.ASGITransport(create_app(rig.settings, rig.rt))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
            for leading in range(6):
                name = f"s{leading}"
                talk = [user(f"Turn {n}: somebody carried {n} baskets of figs to the harbour and sang") for n in range(leading)]
                for number in range(12):
                    talk += [call(f"c{number}"), *(answer(f"c{number}", f"result {number} {n} " + "word " * 15) for n in range(3))]
                    talk += [user(f"It was on day {number} that somebody went home late")]
                body = {"messages": talk, **SPACE}
                await ok(await http.put(f"/v1/working-memory/{name}", params={"context_window_max": 800}, json=body))
                assert await summarize_session(rig.rt, rig.sid(SessionRef(name, None, "ada")))
                left = chat(await read(http, name))
                assert 0 < len(left) < len(talk)
                assert left == talk[-len(left) :]
                assert left[0].get("role") != "tool"


async def test_token_count_includes_tool_calls_and_pictures(http: httpx.AsyncClient) -> None:
    async def tokens(message: dict[str, Any], session: str) -> int:
        body = {"messages": [message], **SPACE}
        return (await ok(await http.post(f"/v1/working-memory/{session}/messages", json=body)))["tokens"]

    plain = await tokens(user("look"), "plain")
    assert await tokens(user("look") | {"tool_calls": [{"id": "a", "function": {"arguments": "word " * 100}}]}, "call") >= plain + 100
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 40_000}}
    assert plain + 500 < await tokens({"role": "user", "content": [{"type": "text", "text": "look"}, picture]}, "picture") < plain + 2000


async def test_only_the_text_of_a_message_is_remembered(rig: Rig, http: httpx.AsyncClient) -> None:
    parts = [{"type": "text", "text": "This is the lighthouse of Porto."}, {"type": "image_url", "image_url": {"url": "https://x.org/a"}}]
    await put(http, [{"role": "user", "content": parts}, call("a"), {"role": "user", "content": parts[1:]}])
    await rig.work(DueKind.SESSION)
    assert [memory.text for memory in await rig.stored()] == ["This is the lighthouse of Porto."]


async def test_journal_contains_only_texts_of_messages(rig: Rig, http: httpx.AsyncClient) -> None:
    await put(http, [user("hi") | {"secret_field": "x" * 100}])
    journal = await rig.rt[SessionStore].journal(rig.sid(SessionRef("s", None, "ada")), "jp", 10)
    assert journal is not None
    assert [stored.message.own_fields for stored in journal.waiting] == [{}]


async def test_export_and_import_preserve_chat_messages(client: MemoryAPIClient, http: httpx.AsyncClient) -> None:
    messages = [message | {"id": f"m{place}"} for place, message in enumerate(EVERY)]
    await put(http, messages)
    lines = [line async for line in client.export_user("ada")]
    await client.delete_working_memory("s", None, "ada")
    report = await client.import_user("ada", lines)
    assert report.problems == []
    assert chat(await read(http)) == EVERY


@pytest.mark.parametrize(
    ("message", "field"),
    [
        ({"role": "user", "content": "hi", "x": "y" * 3000}, "messages.1.x"),
        ({"role": "user", "content": [{"type": "image", "data": "y" * 3000}]}, "messages.1.content"),
    ],
)
async def test_message_size_limit_counts_all_fields(make_rig: MakeRig, message: dict[str, Any], field: str) -> None:
    async with make_rig(None, MAX_MESSAGE_BYTES=2000) as rig:
        transport = httpx.ASGITransport(create_app(rig.settings, rig.rt))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
            for method, path in (("PUT", "/v1/working-memory/s"), ("POST", "/v1/working-memory/s/messages")):
                answered = await http.request(method, path, json={"messages": [user("hi"), message]})
                assert answered.status_code == 413
                assert field in answered.json()["detail"]
                assert "MAX_MESSAGE_BYTES" in answered.text


HOSTILE = [
    (b'{"role": "user", "content": "hi", "x": NaN}', "x"),
    (b'{"role": "user", "content": "hi", "x": ' + b"[" * 100 + b"]" * 100 + b"}", "x"),
    (b'{"role": "user", "content": [{"type": "image", "data": 1e999}]}', "content"),
    (b'{"role": "user", "content": ' + b"[" * 5000 + b"]" * 5000 + b"}", ""),
]


@pytest.mark.parametrize(("message", "field"), HOSTILE, ids=[str(message[:60]) for message, _ in HOSTILE])
async def test_hostile_message_fields_are_refused_by_name(http: httpx.AsyncClient, message: bytes, field: str) -> None:
    headers = {"Content-Type": "application/json"}
    for method, path in (("PUT", "/v1/working-memory/s"), ("POST", "/v1/working-memory/s/messages")):
        answered = await http.request(method, path, content=b'{"messages": [' + message + b"]}", headers=headers)
        assert answered.status_code == 422
        assert field in json.dumps([problem["loc"] for problem in answered.json()["detail"]])
    assert await rig_is_empty(http)


async def rig_is_empty(http: httpx.AsyncClient) -> bool:
    return (await http.get("/v1/working-memory/")).json()["total"] == 0


async def test_deleting_a_session_deletes_all_message_fields(rig: Rig, http: httpx.AsyncClient) -> None:
    await put(http, [user("hi") | {"x": "a-needle-in-the-store"}])
    await ok(await http.delete("/v1/working-memory/s", params=SPACE))
    await rig.work(DueKind.SESSION)
    for key in [key async for key in rig.rt.client.scan_iter(match=rig.keys.root + "*", count=1000)]:
        if await rig.rt.client.type(key) == b"list":
            assert b"needle" not in b"".join(await rig.rt.client.lrange(key, 0, -1))
    assert await rig.rt[SessionStore].get(SCOPE, SessionRef("s", None, "ada")) is None


async def test_client_model_accepts_messages_of_chat_libraries(client: MemoryAPIClient) -> None:
    message = MemoryMessage.model_validate({"role": "assistant", "content": None, "tool_calls": [{"id": "a"}], "refusal": None})
    await client.put_working_memory("s", WorkingMemory(session_id="s", messages=[message]))
    assert (await client.get_working_memory("s")).messages[0].to_chat() == message.to_chat()
