"""Test Anthropic's SDK with in-process memory, and LiteLLM through the proxy."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from uuid import uuid4

import litellm
import pytest
from anthropic import Anthropic, AsyncAnthropic, RateLimitError

from agent_memory_client import ClientMemoryRecord, MemoryClient
from agent_memory_client.integrations.llm import with_memory
from agent_memory_client.sync import SyncMemoryClient
from tests.integrations.conftest import ModelServer

ASKED = "Which nuts is Ada allergic to?"
NUTS: Any = {"role": "user", "content": [{"type": "text", "text": ASKED}]}
CALL = {"type": "tool_use", "id": "t1", "name": "look", "input": {"at": "nuts"}}
MESSAGE = {"id": "msg", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn", "stop_sequence": None}
MESSAGE |= {"usage": {"input_tokens": 1, "output_tokens": 1}}
PEANUTS = {"type": "text", "text": "Peanuts."}
EVENTS: list[dict[str, Any]] = [
    {"type": "message_start", "message": {**MESSAGE, "content": []}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    *({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}} for text in ("Pea", "nuts.")),
    {"type": "content_block_stop", "index": 0},
    {"type": "content_block_start", "index": 1, "content_block": {**CALL, "input": {}}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": '{"at": "nuts"}'}},
    {"type": "content_block_stop", "index": 1},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": None}, "usage": {"output_tokens": 9}},
    {"type": "message_stop"},
]
CALLED = [{"id": "t1", "type": "function", "function": {"name": "look", "arguments": '{"at": "nuts"}'}}]


class Claude:
    """A fake Anthropic messages API that records its requests."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.refuses = False
        self.url = ""


@pytest.fixture
def claude() -> Generator[Claude]:
    state = Claude()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            state.asked.append(body)
            kind, answer = "application/json", json.dumps({**MESSAGE, "content": [PEANUTS]})
            if state.refuses:
                answer = json.dumps({"type": "error", "error": {"type": "rate_limit_error", "message": "slow down"}})
            elif body.get("stream"):
                kind, answer = "text/event-stream", "".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in EVENTS)
            self.send_response(429 if state.refuses else 200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer.encode())

        def log_message(self, format: str, *args: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    state.url = f"http://127.0.0.1:{server.server_port}"
    yield state
    server.shutdown()


@pytest.fixture
async def user(client: MemoryClient) -> str:
    """Create a user who has one memory, and return its id."""
    name = f"ada-{uuid4()}"
    await client.memories.create([ClientMemoryRecord(text="Ada is allergic to peanuts.", user_id=name)], wait=20)
    return name


async def said(client: MemoryClient, user: str, session: str = "s1") -> list[tuple[str, str]]:
    return [(message.role, message.content) for message in (await client.sessions.get(session, user_id=user)).messages]


async def test_anthropic_calls_get_memories_and_are_stored(client: MemoryClient, user: str, claude: Claude) -> None:
    claude_client = with_memory(AsyncAnthropic(base_url=claude.url, api_key="k", max_retries=0), client, user_id=user, session_id="s1")
    message = await claude_client.messages.create(model="m", max_tokens=9, system="Be brief.", messages=[NUTS])
    assert claude.asked[-1]["system"].startswith("Be brief.\n\n")
    assert "allergic to peanuts" in claude.asked[-1]["system"]
    more: Any = [NUTS, {"role": "assistant", "content": message.content}, {"role": "user", "content": "Look again."}]
    async with claude_client.messages.stream(model="m", max_tokens=9, messages=more) as stream:
        assert "".join([text async for text in stream.text_stream]) == "Peanuts."
    result: Any = {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "two nuts"}]}
    more += [{"role": "assistant", "content": [PEANUTS, CALL]}, {"role": "user", "content": [result, {"type": "text", "text": "Well?"}]}]
    system: Any = [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]
    await claude_client.messages.create(model="m", max_tokens=9, system=system, messages=more)
    assert claude.asked[-1]["system"][0] == system[0]
    assert claude.asked[-1]["messages"][-1]["content"] == [result, {"type": "text", "text": "Well?"}]
    expected = [("user", ASKED), ("assistant", "Peanuts."), ("user", "Look again."), ("assistant", "Peanuts."), ("tool", "two nuts")]
    assert await said(client, user) == [*expected, ("user", "Well?"), ("assistant", "Peanuts.")]
    messages = (await client.sessions.get("s1", user_id=user)).messages
    assert [message.own_fields.get("tool_calls") for message in messages if message.role == "assistant"] == [None, CALLED, None]
    claude.refuses = True
    with pytest.raises(RateLimitError):
        await claude_client.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "And?"}])
    assert len(await said(client, user)) == 7


async def test_blocking_anthropic_client_gets_memories_and_stores_calls(
    client: MemoryClient, blocking: SyncMemoryClient, user: str, claude: Claude
) -> None:
    def talk() -> str:
        claude_client = with_memory(Anthropic(base_url=claude.url, api_key="k"), blocking, user_id=user, session_id="s1")
        claude_client.messages.create(model="m", max_tokens=9, messages=[NUTS])
        more: Any = [NUTS, {"role": "assistant", "content": "Peanuts."}, {"role": "user", "content": "Again?"}]
        with claude_client.messages.create(model="m", max_tokens=9, messages=more, stream=True) as stream:
            return "".join(getattr(one.delta, "text", "") for one in stream if one.type == "content_block_delta")

    assert await asyncio.to_thread(talk) == "Peanuts."
    assert "allergic to peanuts" in claude.asked[0]["system"]
    assert await said(client, user) == [("user", ASKED), ("assistant", "Peanuts."), ("user", "Again?"), ("assistant", "Peanuts.")]


@pytest.mark.parametrize("stream", [False, True])
async def test_litellm_calls_through_the_proxy_get_memories_and_are_stored(
    client: MemoryClient, user: str, server_url: str, model: ModelServer, stream: bool
) -> None:
    model.script += ["Peanuts."]
    headers = {"X-Memory-User": user, "X-Memory-Session": "s1"}
    where: dict[str, Any] = {"api_base": f"{server_url}/proxy/v1", "api_key": "sk-upstream", "extra_headers": headers}
    answer: Any = await litellm.acompletion("openai/m", messages=[NUTS], stream=stream, **where)
    pieces = [chunk.choices[0].delta.content or "" async for chunk in answer] if stream else [answer.choices[0].message.content]
    assert "".join(pieces) == "Peanuts."
    assert "allergic to peanuts" in str(model.asked[-1]["messages"][0])
    assert await said(client, user) == [("user", ASKED), ("assistant", "Peanuts.")]
