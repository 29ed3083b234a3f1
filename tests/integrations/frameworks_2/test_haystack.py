"""Test Haystack's messages, agents and tools with the memory server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import pytest
from haystack.components.agents import Agent
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage, ImageContent, ToolCall
from haystack.utils import Secret

from agent_memory_client import ClientMemoryRecord, MemoryClient
from agent_memory_client.integrations.haystack import AgentMemoryChatMessageStore, AgentMemoryRecall, get_memory_tools
from tests.integrations.conftest import ModelServer
from tests.integrations.contract import HistoryContract, RecallContract, in_thread, new_id

CALL = ToolCall("f", {"a": {"b": None}}, id="c1")
MESSAGES = [
    ChatMessage.from_system("Be brief."),
    ChatMessage.from_user("I am Ada. \U0001f600", name="ada", meta={"a": [1, None]}),
    ChatMessage.from_assistant("hm", tool_calls=[CALL]),
    ChatMessage.from_tool("done", origin=CALL, error=True),
    ChatMessage.from_user(content_parts=["look", ImageContent("iVBORw0KGgo=", mime_type="image/png", validation=False)]),
    ChatMessage.from_assistant("Hello Ada"),
    ChatMessage.from_user(""),
]


class Keyed:
    """A message store and the key of a conversation."""

    def __init__(self, store: AgentMemoryChatMessageStore, key: str) -> None:
        self.store = store
        self.key = key


class TestAwaitedStore(HistoryContract):
    messages: ClassVar[Sequence[Any]] = MESSAGES

    def make(self, client: MemoryClient, session_id: str, user_id: str | None) -> Any:
        return Keyed(AgentMemoryChatMessageStore(client, user_id=user_id), session_id)

    async def add(self, history: Any, messages: Sequence[Any]) -> None:
        assert await history.store.write_messages_async(history.key, messages) == len(messages)

    async def get(self, history: Any) -> list[Any]:
        return await history.store.retrieve_messages_async(history.key)

    def say(self, text: str) -> Any:
        return ChatMessage.from_user(text)

    async def clear(self, history: Any) -> None:
        await history.store.delete_messages_async(history.key)


class TestBlockingStore(TestAwaitedStore):
    async def add(self, history: Any, messages: Sequence[Any]) -> None:
        await in_thread(history.store.write_messages, history.key, messages)

    async def get(self, history: Any) -> list[Any]:
        return await in_thread(history.store.retrieve_messages, history.key)

    async def clear(self, history: Any) -> None:
        await in_thread(history.store.delete_messages, history.key)


class TestRecall(RecallContract):
    async def recall(self, client: MemoryClient, user_id: str, question: str) -> str:
        recall = AgentMemoryRecall(client, user_id=user_id)
        awaited, called = await recall.run_async(question), await in_thread(recall.run, question)
        assert awaited == called
        return "".join(str(message.text) for message in awaited)


@pytest.mark.parametrize("awaited", [False, True])
async def test_agent_continues_its_conversation_and_calls_memory_tools(client: MemoryClient, model: ModelServer, *, awaited: bool) -> None:
    user, key = new_id(), new_id()
    await client.memories.create([ClientMemoryRecord(text="Ada is allergic to peanuts.", user_id=user)])
    chat = OpenAIChatGenerator(Secret.from_token("sk-test-0000"), "m", api_base_url=model.url)
    agent = Agent(chat_generator=chat, tools=get_memory_tools(client, key, user_id=user, tools=["search_memory"]))
    store = AgentMemoryChatMessageStore(client, user_id=user)

    async def say(text: str) -> str:
        before = await store.retrieve_messages_async(key)
        messages = [*before, ChatMessage.from_user(text)]
        result = await agent.run_async(messages) if awaited else await in_thread(agent.run, messages)
        await store.write_messages_async(key, result["messages"][len(before) :])
        return str(result["last_message"].text)

    model.script += [{"name": "search_memory", "arguments": {"query": "peanuts"}}, "Peanuts.", "As I said."]
    assert await say("What may I not eat?") == "Peanuts."
    assert "allergic to peanuts" in str(model.asked[-1]["messages"][-1])
    assert await say("Again?") == "As I said."
    assert [message["role"] for message in model.asked[-1]["messages"]] == ["user", "assistant", "tool", "assistant", "user"]
    assert len(await store.retrieve_messages_async(key, last_k=2)) == 2
    with pytest.raises(ValueError, match="no tool"):
        get_memory_tools(client, "s", tools=["nonsense"])
