"""Test the OpenAI SDK with memory through the proxy and in-process."""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import AsyncGenerator, Generator
from typing import Any

import anyio
import httpx2
import openai
import pytest
from openai import AsyncOpenAI, OpenAI

from agent_memory_client import MemoryClient, MemoryClientConfig, SyncMemoryClient
from agent_memory_client.errors import MemoryValidationError
from agent_memory_client.integrations.llm import with_memory
from tests.interfaces.proxy.conftest import KEY, Proxied
from tests.interfaces.proxy.upstream import Answer, chat, chat_stream, event
from tests.support.waiting import wait_until

ASKED = "Which nuts is Ada allergic to?"
NUTS: Any = {"role": "user", "content": ASKED}
ITEM = {"type": "message", "id": "i", "status": "completed", "role": "assistant"}
OUTPUT = [{**ITEM, "content": [{"type": "output_text", "text": "Peanuts.", "annotations": []}]}]
RESPONSE = {"id": "r", "object": "response", "created_at": 1, "model": "m", "output": OUTPUT, "tools": [], "tool_choice": "auto"}
RESPONSE |= {"parallel_tool_calls": True, "status": "completed"}


@pytest.fixture(params=["proxy", "wrapper", "wrapper with a blocking client"])
async def sdk(proxied: Proxied, request: pytest.FixtureRequest) -> AsyncGenerator[AsyncOpenAI]:
    """Provide an OpenAI client that gets memory from the proxy or from the wrapper."""
    config = MemoryClientConfig(base_url=str(proxied.http.base_url))
    if request.param == "proxy":
        headers = {"X-Memory-User": proxied.user, "X-Memory-Session": "s1"}
        yield AsyncOpenAI(base_url=f"{proxied.http.base_url}/proxy/v1", api_key=KEY, default_headers=headers, max_retries=0)
        return
    async with MemoryClient(config) as memory:
        with SyncMemoryClient(config) as blocking:
            plain = AsyncOpenAI(base_url=proxied.upstream.url, api_key=KEY, max_retries=0)
            yield with_memory(plain, memory if request.param == "wrapper" else blocking, user_id=proxied.user, session_id="s1")


async def test_chat_completions_get_memories_and_are_stored(proxied: Proxied, sdk: AsyncOpenAI) -> None:
    memory = await proxied.remember("Ada is allergic to peanuts.")
    proxied.upstream.answers.append(chat("Peanuts."))
    raw = await sdk.chat.completions.with_raw_response.create(model="m", messages=[NUTS])
    completion = raw.parse()
    assert completion.choices[0].message.content == "Peanuts."
    assert (raw.headers["x-memory-status"], raw.headers["x-memory-ids"]) == ("added", memory)
    assert "allergic to peanuts" in proxied.upstream.last.json["messages"][0]["content"]
    assert proxied.upstream.last.header("authorization") == f"Bearer {KEY}"
    talk: Any = [NUTS, completion.choices[0].message, {"role": "user", "content": "Thanks, and walnuts?"}]
    proxied.upstream.answers.append(chat_stream("Wal", "nuts."))
    stream = await sdk.chat.completions.create(model="m", messages=talk, stream=True)
    assert "".join([chunk.choices[0].delta.content or "" async for chunk in stream]) == "Walnuts."
    said = [("user", ASKED), ("assistant", "Peanuts."), ("user", "Thanks, and walnuts?"), ("assistant", "Walnuts.")]
    assert await proxied.said("s1") == said


async def test_stream_helpers_and_responses_api_get_memories_and_are_stored(proxied: Proxied, sdk: AsyncOpenAI) -> None:
    await proxied.remember("Ada is allergic to peanuts.")
    proxied.upstream.answers += [Answer([json.dumps(RESPONSE).encode()]), chat_stream("Again ", "peanuts.")]
    response = await sdk.responses.create(model="m", input=ASKED)
    assert response.output_text == "Peanuts."
    assert "allergic to peanuts" in proxied.upstream.last.json["instructions"]
    async with sdk.chat.completions.stream(model="m", messages=[NUTS]) as stream:
        completion = await stream.get_final_completion()
    assert completion.choices[0].message.content == "Again peanuts."
    delta = {
        "type": "response.output_text.delta",
        "delta": "Peanuts.",
        "item_id": "i",
        "output_index": 0,
        "content_index": 0,
        "logprobs": [],
    }
    script = [{**delta, "sequence_number": 1}, {"type": "response.completed", "response": RESPONSE, "sequence_number": 2}]
    proxied.upstream.answers.append(Answer([event(one) for one in script], "text/event-stream"))
    events = [one.type async for one in await sdk.responses.create(model="m", input="And now?", stream=True)]
    assert events == ["response.output_text.delta", "response.completed"]
    said = ["Peanuts.", "Again peanuts.", "And now?", "Peanuts."]
    assert [text for _, text in await proxied.said("s1")] == [ASKED, *said]


async def test_upstream_error_reaches_the_sdk_and_headers_disable_or_move_memory(proxied: Proxied, sdk: AsyncOpenAI) -> None:
    refusal = json.dumps({"error": {"message": "no such model", "type": "invalid_request_error", "code": "model_not_found"}}).encode()
    proxied.upstream.answers.append(Answer([refusal], status="404 Not Found", headers=[("x-request-id", "req-1")]))
    with pytest.raises(openai.NotFoundError, match="no such model") as raised:
        await sdk.chat.completions.create(model="m", messages=[NUTS])
    assert (raised.value.code, raised.value.request_id) == ("model_not_found", "req-1")
    await sdk.chat.completions.create(model="m", messages=[NUTS], extra_headers={"X-Memory": "off"})
    assert proxied.upstream.last.header("x-memory") is None
    assert await proxied.said("s1") == []
    await sdk.chat.completions.create(model="m", messages=[NUTS], extra_headers={"X-Memory-Session": "s2"})
    assert len(await proxied.said("s2")) == 2


async def test_stream_closed_by_the_caller_stores_the_received_text(proxied: Proxied, sdk: AsyncOpenAI) -> None:
    go = asyncio.Semaphore(1)
    proxied.upstream.answers.append(chat_stream("Half", " an answer", go=go))
    stream = await sdk.chat.completions.create(model="m", messages=[NUTS], stream=True)
    async for _ in stream:
        break
    await stream.close()

    async def stored() -> bool:
        return await proxied.said("s1") == [("user", ASKED), ("assistant", "Half")]

    await wait_until(stored, "half an answer")


async def test_stream_in_a_cancelled_scope_stores_the_received_text(proxied: Proxied, sdk: AsyncOpenAI) -> None:
    """Web frameworks cancel a response's scope when the caller disconnects."""
    proxied.upstream.answers.append(chat_stream("Half", " an answer", go=asyncio.Semaphore(1)))
    with anyio.CancelScope() as scope:
        async with await sdk.chat.completions.create(model="m", messages=[NUTS], stream=True) as stream:
            async for _ in stream:
                scope.cancel()

    async def stored() -> bool:
        return await proxied.said("s1") == [("user", ASKED), ("assistant", "Half")]

    await wait_until(stored, "half an answer")


async def test_warning_about_messages_that_are_not_stored_hides_their_text(
    proxied: Proxied, sdk: AsyncOpenAI, caplog: pytest.LogCaptureFixture
) -> None:
    odd: Any = {"role": "user", "content": {"text": "my secret"}}
    await sdk.chat.completions.create(model="m", messages=[odd])
    assert {record.getMessage() for record in caplog.records if record.levelname == "WARNING"} == {"messages of a model call not stored"}
    assert "my secret" not in str([vars(record) for record in caplog.records])


async def test_messages_in_a_call_are_not_added_again_as_memories(proxied: Proxied, sdk: AsyncOpenAI) -> None:
    said: Any = {"role": "user", "content": "My cat Mimi is allergic to walnuts."}
    asked: Any = {"role": "user", "content": "What is my cat Mimi allergic to?"}
    proxied.upstream.answers.append(chat("Understood."))
    await sdk.chat.completions.create(model="m", messages=[said])
    more = {"user_id": proxied.user, "messages": [{"role": "user", "content": "I live in Porto.", "id": "x"}]}
    (await proxied.http.post("/v1/working-memory/s1/messages", json=more, params={"wait": 20})).raise_for_status()
    talk: Any = [said, {"role": "assistant", "content": "Understood."}, asked]
    for sent in ([asked], talk):
        await sdk.chat.completions.create(model="m", messages=sent, extra_headers={"X-Memory": "read"})
        assert json.dumps(proxied.upstream.last.json).count("allergic to walnuts") == 1


async def test_lone_surrogate_does_not_stop_a_call(proxied: Proxied, sdk: AsyncOpenAI) -> None:
    memory = await proxied.remember("Ada is allergic to peanuts.")
    content = json.dumps({"model": "m", "messages": [{"role": "user", "content": f"{ASKED} \ud83d"}]}).encode()
    headers = {"content-type": "application/json"}
    answer = await sdk.post("/chat/completions", cast_to=httpx2.Response, content=content, options={"headers": headers})
    assert (answer.status_code, answer.headers["x-memory-ids"]) == (200, memory)
    context, asked = proxied.upstream.last.json["messages"]
    assert "allergic to peanuts" in context["content"]
    assert asked["content"].startswith(ASKED)
    assert await proxied.said("s1") == [("user", f"{ASKED} \ufffd"), ("assistant", "Understood.")]


@pytest.fixture
def blocking(proxied: Proxied) -> Generator[SyncMemoryClient]:
    with SyncMemoryClient(MemoryClientConfig(base_url=str(proxied.http.base_url))) as memory:
        yield memory


async def test_blocking_client_gets_memories_and_stores_calls(proxied: Proxied, blocking: SyncMemoryClient) -> None:
    await proxied.remember("Ada is allergic to peanuts.")
    proxied.upstream.answers += [chat("Peanuts."), chat_stream("Pea", "nuts!")]

    def talk() -> tuple[list[str | None], list[str]]:
        client = with_memory(OpenAI(base_url=proxied.upstream.url, api_key=KEY), blocking, user_id=proxied.user, max_tokens=200)
        gc.collect()  # the plain client is collected, but its connections must stay open
        whole = client.chat.completions.create(model="m", messages=[NUTS])
        more: Any = [NUTS, whole.choices[0].message, {"role": "user", "content": "Really?"}]
        with client.chat.completions.create(model="m", messages=more, stream=True) as stream:
            streamed = "".join(chunk.choices[0].delta.content or "" for chunk in stream)
        client.close()
        return [whole.choices[0].message.content, streamed], blocking.sessions.list(user_id=proxied.user).sessions

    texts, (session,) = await asyncio.to_thread(talk)
    assert texts == ["Peanuts.", "Peanuts!"]
    assert [text for _, text in await proxied.said(session)] == [ASKED, "Peanuts.", "Really?", "Peanuts!"]


async def test_calls_succeed_if_the_memory_server_is_unreachable(proxied: Proxied) -> None:
    async with MemoryClient(MemoryClientConfig(base_url="http://127.0.0.1:9", timeout=2)) as nobody:
        client = with_memory(AsyncOpenAI(base_url=proxied.upstream.url, api_key=KEY), nobody, user_id="ada")
        raw = await client.chat.completions.with_raw_response.create(model="m", messages=[NUTS])
        assert raw.parse().choices[0].message.content == "Understood."
        assert raw.headers["x-memory-status"] == "failed"
        with pytest.raises(MemoryValidationError):
            with_memory(client, nobody, user_id="ada", session_id="a/b")
