"""Test that `AgentMemorySession` preserves items, and that the tools and the hook add memory."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from copy import deepcopy
from typing import Any
from uuid import uuid4

import pytest
from agents import Agent, OpenAIChatCompletionsModel, RunConfig, Runner, function_tool
from agents.memory import Session, SessionSettings, SQLiteSession
from agents.strict_schema import ensure_strict_json_schema
from openai import AsyncOpenAI

from agent_memory_client import ClientMemoryRecord, MemoryClient, MemoryClientConfig
from agent_memory_client.errors import MemoryClientError, MemoryUnavailableError
from agent_memory_client.integrations.openai_agents import AgentMemorySession, get_memory_tools, memory_filter
from agent_memory_client.sync import SyncMemoryClient
from tests.integrations.conftest import NOBODY, ModelServer, mcp_tools
from tests.integrations.contract import HALF_AN_EMOJI, ODD_TEXTS

ITEMS: list[dict[str, Any]] = [
    {"role": "user", "content": "I am Ada."},
    {
        "type": "message",
        "role": "user",
        "content": [{"type": "input_text", "text": "look"}, {"type": "input_image", "image_url": "data:,"}],
    },
    {"id": "rs_1", "type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": None},
    {"type": "function_call", "call_id": "c1", "name": "f", "arguments": '{"a": [1, 2]}', "id": "fc_1", "status": "completed"},
    {"type": "function_call_output", "call_id": "c1", "output": "done"},
    {"type": "function_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "a part"}]},
    {"type": "function_call_output", "call_id": "c3", "output": ""},
    {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "Hello Ada", "annotations": [], "logprobs": []}],
    },
    {"role": "user", "content": ""},
    {"role": "developer", "content": " "},
    {"type": "computer_call", "id": "x", "call_id": "y", "action": {"type": "click", "x": 1, "y": 2.5, "button": "left"}},
    {"type": "something_new", "deep": {"null": None, "list": [[], {}], "big": 2**60, "text": "\u2028 <|im_end|> \U0001f600"}},
    {"role": "user", "content": "I am Ada."},
]


def new_id() -> str:
    return f"s-{uuid4()}"


def agent_of(model: ModelServer, **more: Any) -> Agent[Any]:
    chat = OpenAIChatCompletionsModel("m", AsyncOpenAI(base_url=model.url, api_key="sk-test-0000"))
    return Agent(name="helper", instructions="Be brief.", model=chat, **more)


async def test_strict_mode_accepts_the_schemas_of_the_mcp_tools(server_url: str) -> None:
    for tool in await mcp_tools(server_url):
        strict = ensure_strict_json_schema(deepcopy(tool["inputSchema"]))
        assert set(strict["required"]) == tool["inputSchema"]["properties"].keys(), tool["name"]


async def test_session_returns_every_item_unchanged(client: MemoryClient) -> None:
    session = AgentMemorySession(new_id(), client, user_id=new_id())
    assert isinstance(session, Session)
    assert await session.get_items() == []
    await session.add_items([])
    assert await session.pop_item() is None
    await session.add_items(ITEMS[:4])
    await session.add_items(ITEMS[4:])
    assert json.dumps(await session.get_items()) == json.dumps(ITEMS)
    assert await session.get_items(limit=3) == ITEMS[-3:]
    assert await session.get_items(limit=0) == []
    assert await AgentMemorySession(session.session_id, client, user_id="another").get_items() == []
    for item in reversed(ITEMS[6:]):
        assert await session.pop_item() == item
    await session.add_items(ITEMS[6:7])
    assert await session.get_items() == ITEMS[:7]
    await session.clear_session()
    await session.clear_session()
    assert await session.get_items() == []
    await session.add_items(ITEMS[:1])
    assert await session.get_items() == ITEMS[:1]


async def test_session_accepts_any_text_as_the_sdks_own_session_does(client: MemoryClient) -> None:
    ours, theirs = AgentMemorySession(new_id(), client, user_id=new_id()), SQLiteSession(new_id())
    items: list[Any] = []
    for text in [*ODD_TEXTS, HALF_AN_EMOJI]:
        items += [
            {"role": "user", "content": text},
            {"role": "user", "content": [{"type": "input_text", "text": text}]},
            {"type": "function_call", "call_id": "c1", "name": "shell", "arguments": json.dumps({text: text})},
            {"type": "function_call_output", "call_id": "c1", "output": text},
        ]
    for session in (ours, theirs):
        await session.add_items(items)
    kept = await theirs.get_items()
    assert (await ours.get_items())[:-4] == kept[:-4]
    assert (await ours.get_items())[-1]["output"] == HALF_AN_EMOJI.replace("\ud83d", "\ufffd")
    assert len(await ours.get_items()) == len(kept)


async def test_limits_select_the_same_items_as_the_sdks_own_session(client: MemoryClient) -> None:
    """The last items can include calls without outputs and outputs without calls."""
    user = new_id()
    call = {"type": "function_call", "name": "sh", "arguments": "{}"}
    output = {"type": "function_call_output", "output": "done"}
    items = [{"role": "user", "content": "Run both."}, *({**call, "call_id": each} for each in ("c1", "c2"))]
    items += [*({**output, "call_id": each} for each in ("c1", "c2")), {"role": "assistant", "content": "Done."}]
    sessions = (AgentMemorySession(new_id(), client, user_id=user), SQLiteSession(new_id()))
    for session in sessions:
        await session.add_items(items * 2)
    for limit in (None, *range(len(items) * 2 + 3)):
        ours, theirs = [await session.get_items(limit) for session in sessions]
        assert ours == theirs, limit


def test_blocking_client_works_in_consecutive_event_loops(blocking: SyncMemoryClient, model: ModelServer) -> None:
    """Programs that repeatedly call `Runner.run_sync` or `asyncio.run` reuse one client."""
    user = new_id()
    session = AgentMemorySession(new_id(), blocking, user_id=user)
    asyncio.run(session.add_items(ITEMS))
    assert asyncio.run(session.get_items()) == ITEMS
    assert asyncio.run(session.pop_item()) == ITEMS[-1]
    asyncio.run(session.clear_session())
    assert asyncio.run(session.get_items()) == []
    config = RunConfig(call_model_input_filter=memory_filter(blocking, user_id=user))
    agent = agent_of(model, tools=get_memory_tools(blocking, session.session_id, user_id=user))
    model.script += [{"name": "search_memory", "arguments": {"query": "bees"}}, "none", "still none"]
    assert Runner.run_sync(agent, "What do I keep?", session=session, run_config=config).final_output == "none"
    assert Runner.run_sync(agent, "And now?", session=session, run_config=config).final_output == "still none"
    assert len(asyncio.run(session.get_items())) == 6


async def test_long_session_returns_every_item_after_a_flush(client: MemoryClient) -> None:
    user = new_id()
    session = AgentMemorySession(new_id(), client, user_id=user, session_settings=SessionSettings(limit=2))
    items = [{"role": "user", "content": f"{number}: " + "many words of a long talk " * 200} for number in range(60)]
    for start in range(0, 60, 20):
        await session.add_items(items[start : start + 20])
    await client.sessions.flush(session.session_id, user_id=user, wait=True)
    assert await session.get_items(limit=1000) == items
    assert await session.get_items() == items[-2:]


@pytest.mark.parametrize("name", ["a/b", "*", "{}", "@t:{*}", "a|b", " ", "é", "\U0001f600", "%2F", "'\"\\"])
async def test_hostile_ids_are_stored_unchanged_and_invalid_ones_refused(client: MemoryClient, name: str) -> None:
    user = new_id()
    mine, other = AgentMemorySession(f"{name}{user}", client, user_id=name + user), AgentMemorySession(user, client, user_id=user)
    await mine.add_items(ITEMS[:1])
    assert await mine.get_items() == ITEMS[:1]
    assert await other.get_items() == []
    for bad in ("", "..", "\x00", "x" * 2000):
        with pytest.raises(MemoryClientError):
            await AgentMemorySession(bad, client).get_items()


async def test_unreachable_server_raises_at_once(model: ModelServer) -> None:
    began = time.monotonic()
    async with MemoryClient(NOBODY) as nobody:
        with pytest.raises(MemoryUnavailableError):
            await AgentMemorySession("s", nobody).get_items()
        with pytest.raises(MemoryUnavailableError):
            await Runner.run(agent_of(model), "hello", session=AgentMemorySession("s", nobody))
        model.script += ["fine"]
        config = RunConfig(call_model_input_filter=memory_filter(nobody, user_id="u"))
        assert (await Runner.run(agent_of(model), "hello", run_config=config)).final_output == "fine"
    assert time.monotonic() - began < 30


async def test_second_run_continues_the_stored_session(client: MemoryClient, model: ModelServer) -> None:
    @function_tool
    def add(a: int, b: int) -> str:
        """Adds."""
        return str(a + b)

    user = new_id()
    session = AgentMemorySession(new_id(), client, user_id=user)
    agent = agent_of(model, tools=[add])
    model.script += [{"name": "add", "arguments": {"a": 2, "b": 3}}, "It is 5."]
    assert (await Runner.run(agent, "What is 2 + 3?", session=session)).final_output == "It is 5."
    items = await session.get_items()
    assert [item.get("type", "message") for item in items] == ["message", "function_call", "function_call_output", "message"]
    model.script += ["5, as I said."]
    again = AgentMemorySession(session.session_id, client, user_id=user)
    assert (await Runner.run(agent, "Again?", session=again)).final_output == "5, as I said."
    sent = model.asked[-1]["messages"]
    assert [message["role"] for message in sent] == ["system", "user", "assistant", "tool", "assistant", "user"]
    assert sent[2]["tool_calls"][0]["function"]["name"] == "add"


def test_blocking_runs_continue_one_session(server_url: str, model: ModelServer) -> None:
    """Each run has its own event loop and its own client."""

    async def talk(said: str) -> str:
        async with MemoryClient(MemoryClientConfig(base_url=server_url)) as client:
            result = await Runner.run(agent_of(model), said, session=AgentMemorySession("blocking", client, user_id=user))
            return str(result.final_output)

    user = new_id()
    model.script += ["one", "two"]
    answers: list[str] = []
    thread = threading.Thread(target=lambda: answers.extend([asyncio.run(talk("1")), asyncio.run(talk("2"))]))
    thread.start()
    thread.join(60)
    assert answers == ["one", "two"]
    assert len(model.asked[-1]["messages"]) == 4


async def test_tools_and_hook_give_the_model_the_users_memories(client: MemoryClient, model: ModelServer) -> None:
    user = new_id()
    tools = get_memory_tools(client, "s", user_id=user)
    assert "search_memory" in {tool.name for tool in tools}
    with pytest.raises(ValueError, match="no tool"):
        get_memory_tools(client, "s", tools=["nonsense"])
    await client.memories.create([ClientMemoryRecord(text="Ada is allergic to peanuts.", user_id=user)], wait=True)
    model.script += [{"name": "search_memory", "arguments": {"query": "peanuts"}}, "Peanuts."]
    await Runner.run(agent_of(model, tools=tools), "What may I not eat?")
    assert "allergic to peanuts" in str(model.asked[-1]["messages"])
    config = RunConfig(call_model_input_filter=memory_filter(client, user_id=user))
    model.script += ["Peanuts."]
    await Runner.run(agent_of(model), "Which peanuts may I eat?", run_config=config)
    system = model.asked[-1]["messages"][0]
    assert system["role"] == "system"
    assert "Be brief." in str(system["content"])
    assert "allergic to peanuts" in str(system["content"])
    stranger = RunConfig(call_model_input_filter=memory_filter(client, user_id=new_id()))
    await Runner.run(agent_of(model), "Which peanuts may I eat?", run_config=stranger)
    assert "allergic" not in str(model.asked[-1]["messages"])
