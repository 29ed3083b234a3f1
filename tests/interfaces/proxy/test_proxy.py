"""Test that the proxy forwards calls byte for byte, adds memories, and stores new messages."""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import Any

import httpx
import pytest

from agent_memory.features.recall.service import RecallService
from agent_memory.features.sessions.service import SessionService
from agent_memory.foundation.core.errors import RedisUnavailable
from agent_memory.interfaces.proxy import call_memory, relay
from agent_memory_client.models import MAX_APPENDED_MESSAGES
from agent_memory_client.models.llm import ANTHROPIC, Conversation
from tests.interfaces.proxy.conftest import KEY, Proxied
from tests.interfaces.proxy.upstream import Answer, chat, chat_events, chat_stream, event
from tests.support.waiting import wait_until

NUTS = {"role": "user", "content": "Which nuts is Ada allergic to?"}
S1 = {"x-memory-session": "s1"}


async def test_call_gets_memories_and_its_messages_are_stored(proxied: Proxied) -> None:
    memory = await proxied.remember("Ada is allergic to peanuts.")
    proxied.upstream.answers.append(chat("No peanuts for you."))
    answer = await proxied.chat([NUTS], S1)
    assert answer.status_code == 200
    assert answer.json()["choices"][0]["message"]["content"] == "No peanuts for you."
    sent = proxied.upstream.last
    assert sent.header("authorization") == f"Bearer {KEY}"
    assert [message["role"] for message in sent.json["messages"]] == ["system", "user"]
    assert "allergic to peanuts" in sent.json["messages"][0]["content"]
    told = {name: answer.headers[f"x-memory-{name}"] for name in ("status", "added", "ids", "session", "stored")}
    assert told == {"status": "added", "added": "1", "ids": memory, "session": "s1", "stored": "yes"}
    assert int(answer.headers["x-memory-tokens"]) > 5
    assert await proxied.said("s1") == [("user", NUTS["content"]), ("assistant", "No peanuts for you.")]


async def test_request_and_stream_pass_byte_for_byte_without_relevant_memories(proxied: Proxied) -> None:
    await proxied.remember("Ada is allergic to peanuts.", user=f"bo-{proxied.user}")
    script = chat_stream("Hel", "lo, ", "Ada. 你好")
    script.content_type = "Text/Event-Stream; charset=utf-8"
    script.headers += [("x-request-id", "req-of-upstream"), ("openai-processing-ms", "7")]
    proxied.upstream.answers.append(script)
    body = b'{"model":"m", "stream" :true,"temperature":1.0,"messages":[{"role":"user","content":"Hi, I am \\u0041da."}]}'
    headers = {"x-memory-user": proxied.user, **S1, "content-type": "application/json", "openai-organization": "org"}
    answer = await proxied.http.post("/proxy/v1/chat/completions?api-version=2", content=body, headers=headers)
    assert answer.content == b"".join(script.pieces)
    assert (answer.headers["x-request-id"], answer.headers["openai-processing-ms"]) == ("req-of-upstream", "7")
    assert (answer.headers["x-memory-status"], answer.headers["x-memory-added"]) == ("nothing", "0")
    sent = proxied.upstream.last
    assert sent.body == body
    assert sent.line == "POST /v1/chat/completions?api-version=2 HTTP/1.1"
    assert (sent.header("openai-organization"), sent.header("authorization")) == ("org", None)
    assert not [name for name, _ in sent.headers if name.lower().startswith("x-memory")]
    assert await proxied.said("s1") == [("user", "Hi, I am Ada."), ("assistant", "Hello, Ada. 你好")]


@pytest.mark.parametrize("system", ["Be brief.", [{"type": "text", "text": "Be brief."}], None])
async def test_memories_are_added_to_the_instructions_for_any_last_message(proxied: Proxied, system: Any) -> None:
    await proxied.remember("Ada is allergic to peanuts.")
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 5000}}
    file = {"type": "file", "file": {"filename": "nuts.pdf", "file_data": "A" * 6000}}
    asked = {"role": "user", "content": [{"type": "text", "text": NUTS["content"]}, image, file]}
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    talk = [asked, {"role": "assistant", "content": None, "tool_calls": [call]}, {"role": "tool", "tool_call_id": "c1", "content": "a nut"}]
    before = [] if system is None else [{"role": "developer", "content": system}]
    for end in (1, 3):
        assert (await proxied.chat([*before, *talk[:end]], S1)).headers["x-memory-status"] == "added"
        first, *rest = proxied.upstream.last.json["messages"]
        assert rest == talk[:end], "the conversation itself stays as it is"
        assert first["role"] == ("system" if system is None else "developer")
        text = first["content"] if isinstance(first["content"], str) else "\n".join(part["text"] for part in first["content"])
        assert "allergic to peanuts" in text
        assert text.startswith("Be brief.") == (system is not None)
    stored = await proxied.session("s1")
    assert [message["role"] for message in stored] == ["user", "assistant", "tool", "assistant"]
    text, picture, kept = stored[0]["content_parts"]
    assert (text, picture) == (asked["content"][0], image), "a session keeps pictures"
    assert kept["file"]["filename"] == "nuts.pdf"
    assert kept["file"]["file_data"].startswith("sha256:"), "a session keeps the digest of an encoded file"


async def test_tool_calls_of_a_stream_are_stored(proxied: Proxied) -> None:
    function = {"index": 0, "id": "c1", "type": "function", "function": {"name": "look", "arguments": ""}}
    more = {"index": 0, "function": {"arguments": '{"at": "nuts"}'}}
    proxied.upstream.answers.append(chat_events({"role": "assistant", "tool_calls": [function]}, {"tool_calls": [more]}))
    await proxied.chat([NUTS], S1, stream=True)
    (_, answer) = await proxied.session("s1")
    assert answer["tool_calls"] == [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at": "nuts"}'}}]


async def test_tool_calls_with_the_same_index_and_a_split_emoji_are_stored(proxied: Proxied) -> None:
    """Old versions of Ollama give each tool call the index 0. JavaScript gateways split emojis."""
    calls = [{"id": name, "type": "function", "function": {"name": name, "arguments": "{}"}} for name in ("a", "b")]
    deltas = [{"content": "So \ud83d"}, {"content": "\ude00"}, *({"tool_calls": [{"index": 0, **call}]} for call in calls)]
    proxied.upstream.answers.append(chat_events(*deltas))
    await proxied.chat([NUTS], S1, stream=True)
    (_, answer) = await proxied.session("s1")
    assert (answer["content"], answer["tool_calls"]) == ("So 😀", calls)


async def test_call_with_the_beginning_of_the_answer_stores_the_question(proxied: Proxied) -> None:
    parts = [{"type": "thinking", "thinking": [{"type": "text", "text": "Nuts?"}]}, {"type": "text", "text": "anuts."}]
    for _ in range(2):
        proxied.upstream.answers.append(chat(parts))
        await proxied.chat([NUTS, {"role": "assistant", "content": "Pe"}], S1)
    assert await proxied.said("s1") == [("user", NUTS["content"]), ("assistant", "anuts.")]


async def test_empty_result_of_a_tool_is_stored(proxied: Proxied) -> None:
    """OpenAI rejects a prompt in which a tool call has no result."""
    calls = [{"id": "c1", "type": "function", "function": {"name": "clear", "arguments": "{}"}}]
    talk = [NUTS, {"role": "assistant", "content": None, "tool_calls": calls}, {"role": "tool", "tool_call_id": "c1", "content": ""}]
    proxied.upstream.answers.append(chat("", tool_calls=calls))
    await proxied.chat(talk[:1], S1)
    await proxied.chat(talk, S1)
    stored = [(message["role"], message.get("tool_call_id")) for message in await proxied.session("s1")]
    assert stored == [("user", None), ("assistant", None), ("tool", "c1"), ("assistant", None)]


def test_answer_contains_only_the_callers_tool_calls() -> None:
    """Anthropic runs its server-side tools itself."""
    blocks = [{"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}, {"type": "tool_use", "id": "t", "name": "now"}]
    events = [{"type": "content_block_start", "index": index, "content_block": block} for index, block in enumerate(blocks)]
    events.insert(
        1, {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": '{"query": "nuts"}'}}
    )
    reader = ANTHROPIC.answer()
    for each in events:
        reader.feed(event(each))
    called = {"id": "t", "type": "function", "function": {"name": "now", "arguments": "{}"}}
    assert reader.message() == {"role": "assistant", "content": None, "tool_calls": [called]}


async def test_responses_api_call_gets_memories_and_is_stored(proxied: Proxied) -> None:
    await proxied.remember("Ada is allergic to peanuts.")
    said = [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Peanuts."}]}]
    events = [
        {"type": "response.output_text.delta", "delta": "Pea"},
        {"type": "response.output_text.delta", "delta": "nuts."},
        {"type": "response.completed", "response": {"output": said}},
    ]
    given = [
        {"role": "user", "content": [{"type": "input_text", "text": NUTS["content"]}, {"type": "input_image", "image_url": "data:,x"}]}
    ]
    for session, content, script in (
        ("s1", NUTS["content"], Answer([json.dumps({"id": "r", "output": said}).encode()])),
        ("s2", given, Answer([event(one) for one in events], "text/event-stream")),
    ):
        proxied.upstream.answers.append(script)
        headers = {"x-memory-user": proxied.user, "x-memory-session": session}
        body = {"model": "m", "input": content, "instructions": "Be brief.", "stream": session == "s2"}
        answer = await proxied.http.post("/proxy/v1/responses", json=body, headers=headers)
        assert answer.content == b"".join(script.pieces)
        sent = proxied.upstream.last.json
        assert sent["input"] == content
        assert sent["instructions"].startswith("Be brief.\n\n")
        assert "allergic to peanuts" in sent["instructions"]
        assert await proxied.said(session) == [("user", NUTS["content"]), ("assistant", "Peanuts.")]


def test_new_messages_and_the_answer_fit_into_one_request() -> None:
    conversation = Conversation({}, [{"role": "user", "content": f"Line {number}"} for number in range(MAX_APPENDED_MESSAGES + 5)])
    assert len(conversation.new) == MAX_APPENDED_MESSAGES - 1
    assert conversation.new[-1][0]["content"] == f"Line {MAX_APPENDED_MESSAGES + 4}"


async def test_history_and_retries_are_stored_once(proxied: Proxied) -> None:
    """Programs resend the entire conversation, SDKs retry, and users repeat themselves."""
    talk: list[dict[str, Any]] = [{"role": "system", "content": "It is 9 o'clock."}]
    for question, answer in (("yes", "A"), ("yes", "B"), ("no", "C"), ("yes", "A")):
        talk.append({"role": "user", "content": question})
        for clock in ("9", "10"):
            talk[0] = {"role": "system", "content": f"It is {clock} o'clock."}
            proxied.upstream.answers.append(chat(answer))
            await proxied.chat(talk, S1)
        talk.append({"role": "assistant", "content": answer, "refusal": None, "annotations": []})
    assert [text for _, text in await proxied.said("s1")] == ["yes", "A", "yes", "B", "no", "C", "yes", "A"]


async def test_different_answers_to_a_repeated_call_are_both_stored(proxied: Proxied) -> None:
    for answer in ("One.", "Another."):
        proxied.upstream.answers.append(chat(answer))
        await proxied.chat([NUTS], S1)
    assert [text for _, text in await proxied.said("s1")] == [NUTS["content"], "One.", "Another."]


async def test_messages_in_the_request_are_not_recalled_again(proxied: Proxied) -> None:
    said = {"role": "user", "content": "My cat Mimi is allergic to peanuts and to walnuts."}
    await proxied.chat([said], S1)
    await proxied.http.post(
        "/v1/working-memory/s1/messages", json={"user_id": proxied.user, "messages": [{**said, "id": "x"}]}, params={"wait": 20}
    )
    asked = {"role": "user", "content": "What is my cat Mimi allergic to?"}
    alone = await proxied.chat([asked], {"x-memory-session": "s2"})
    assert alone.headers["x-memory-status"] == "added"
    (again,) = [alone.headers["x-memory-ids"]]
    together = await proxied.chat([said, {"role": "assistant", "content": "Understood."}, asked], S1)
    assert again not in together.headers.get("x-memory-ids", "")


async def test_errors_of_the_upstream_pass_through_and_nothing_is_stored(proxied: Proxied) -> None:
    refusal = b'{"error": {"message": "slow down", "type": "rate_limit"}}\n'
    proxied.upstream.answers.append(Answer([refusal], status="429 Too Many Requests", headers=[("retry-after", "3")]))
    answer = await proxied.chat([NUTS], S1)
    assert (answer.status_code, answer.content, answer.headers["retry-after"]) == (429, refusal, "3")
    assert answer.headers["x-memory-stored"] == "no"
    assert await proxied.said("s1") == []


async def test_unreachable_upstream_returns_503_with_retry_after(proxied: Proxied) -> None:
    proxied.upstream.answers.append(Answer([], breaks=True, status="nonsense"))
    for upstream in ("main", "none"):
        answer = await proxied.chat([NUTS], {**S1, "x-memory-upstream": upstream})
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert await proxied.said("s1") == []
    proxied.upstream.answers.append(Answer([b'{"choices": ['], breaks=True))
    assert (await proxied.chat([NUTS], S1)).status_code == 503
    assert (await proxied.chat([NUTS], S1)).status_code == 200
    assert await proxied.said("s1") == [("user", NUTS["content"]), ("assistant", "Understood.")]


async def test_long_answer_passes_through_without_being_stored(proxied: Proxied, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relay, "_MOST_READ_BYTES", 100)
    script = Answer([b'{"choices": [', b" " * 90, b" " * 90, b"]}"])
    proxied.upstream.answers.append(script)
    assert (await proxied.chat([NUTS], S1)).content == b"".join(script.pieces)
    assert await proxied.said("s1") == [("user", NUTS["content"])]


async def test_opted_out_call_passes_unchanged_and_is_not_stored(proxied: Proxied) -> None:
    await proxied.remember("Ada is allergic to peanuts.")
    answer = await proxied.chat([NUTS], {**S1, "x-memory": "off", "x-memory-user": ""})
    assert answer.headers["x-memory-status"] == "off"
    assert proxied.upstream.last.json["messages"] == [NUTS]
    await proxied.chat([NUTS, {"role": "assistant", "content": "Hm."}, {"role": "user", "content": "Well?"}], S1)
    assert await proxied.said("s1") == [("user", "Well?"), ("assistant", "Understood.")], "the turn without memory stays out"
    answer = await proxied.chat([NUTS], {"x-memory-session": "s2", "x-memory": "read"})
    assert (answer.headers["x-memory-status"], answer.headers["x-memory-stored"]) == ("added", "no")
    assert await proxied.said("s2") == []


async def test_body_names_user_and_session_unless_headers_do(proxied: Proxied) -> None:
    nobody = {"x-memory-user": ""}
    refused = await proxied.chat([NUTS], nobody)
    assert refused.status_code == 422
    assert "x-memory-user" in refused.text
    await proxied.chat([NUTS], nobody, user=f"ö{proxied.user}", metadata={"session_id": "s1"})
    await proxied.chat([NUTS], nobody, user=f"x{proxied.user}", metadata={"session_id": "s1", "user_id": f"eve{proxied.user}"})
    first = await proxied.chat([NUTS], {"x-memory-user": f"zoë{proxied.user}"})
    second = await proxied.chat(
        [NUTS, {"role": "assistant", "content": "Ok."}, {"role": "user", "content": "And?"}], {"x-memory-user": f"zoë{proxied.user}"}
    )
    unnamed = first.headers["x-memory-session"]
    assert second.headers["x-memory-session"] == unnamed
    places = (("s1", "ö"), ("s1", "eve"), ("s1", "x"), (unnamed, "zoë"))
    assert [len(await proxied.said(session, user + proxied.user)) for session, user in places] == [2, 2, 0, 4]


async def test_token_budget_limits_the_added_memories(proxied: Proxied) -> None:
    for number in range(12):
        await proxied.remember(
            f"Ada is allergic to nut number {number}, which she ate in the summer of {2000 + number}.", name=f"m{number}"
        )
    whole, small = [int((await proxied.chat([NUTS], more)).headers["x-memory-tokens"]) for more in ({}, {"x-memory-tokens": "100"})]
    assert 0 < small <= 100 < whole
    assert (await proxied.chat([NUTS], {"x-memory-tokens": "1"})).status_code == 422


async def test_call_succeeds_if_recall_or_storage_fails(proxied: Proxied, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fails(*_: Any, **__: Any) -> Any:
        raise RedisUnavailable("away")

    async def crashes(*_: Any, **__: Any) -> Any:
        raise KeyError("a defect")

    for failure in (fails, crashes):
        monkeypatch.setattr(RecallService, "build_prompt", failure)
        answer = await proxied.chat([NUTS], S1)
        assert (answer.status_code, answer.headers["x-memory-status"], answer.headers["x-memory-stored"]) == (200, "failed", "yes")
    monkeypatch.setattr(SessionService, "append_messages", fails)
    monkeypatch.setattr(call_memory, "_STORE_SECONDS", 0.1)
    answer = await proxied.chat([NUTS], S1)
    assert (answer.status_code, answer.headers["x-memory-stored"]) == (200, "failed")


@pytest.mark.parametrize("leaves", [True, False])
async def test_interrupted_stream_stores_the_received_text(proxied: Proxied, leaves: bool) -> None:
    """The caller disconnects, or the upstream connection breaks."""
    go = asyncio.Semaphore(2)
    proxied.upstream.answers.append(chat_stream("Half ", "an answer", *([" more"] if leaves else []), go=go, ends=False))
    body = {"model": "m", "messages": [NUTS], "stream": True}
    broken = contextlib.nullcontext() if leaves else pytest.raises(httpx.RemoteProtocolError)
    with broken:
        async with proxied.http.stream(
            "POST", "/proxy/v1/chat/completions", json=body, headers={"x-memory-user": proxied.user, **S1}
        ) as answer:
            seen = b""
            async for piece in answer.aiter_raw():
                seen += piece
                assert (await proxied.said("s1"))[:1] == [("user", NUTS["content"])], "stored before the first byte"
                if b"an answer" in seen and leaves:
                    break

    async def stored() -> bool:
        return await proxied.said("s1") == [("user", NUTS["content"]), ("assistant", "Half an answer")]

    await wait_until(stored, "the stored messages")
    if leaves:

        async def told() -> bool:
            return proxied.upstream.left == 1

        await wait_until(told, "the end of the call")


async def test_message_of_a_caller_that_disconnects_before_the_answer_is_stored(proxied: Proxied) -> None:
    go = asyncio.Semaphore(0)
    proxied.upstream.answers.append(Answer([b"{}"], go=go, late=True))
    task = asyncio.create_task(proxied.chat([NUTS], S1))

    async def arrived() -> bool:
        return bool(proxied.upstream.received)

    await wait_until(arrived, "the call")
    task.cancel()

    async def stored() -> bool:
        return await proxied.said("s1") == [("user", NUTS["content"])]

    await wait_until(stored, "the stored messages")
