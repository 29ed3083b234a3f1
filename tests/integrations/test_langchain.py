"""Test LangChain's message history, retriever and tools with the memory server."""

from __future__ import annotations

import time
from typing import Any
from uuid import uuid4

import pytest
from langchain.agents import create_agent
from langchain_core.chat_history import InMemoryChatMessageHistory
from langchain_core.messages import AIMessage, BaseMessage, ChatMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_openai import ChatOpenAI

from agent_memory_client import ClientMemoryRecord, MemoryClient
from agent_memory_client.errors import MemoryUnavailableError
from agent_memory_client.integrations.langchain import AgentMemoryChatMessageHistory, AgentMemoryRetriever, get_memory_tools
from agent_memory_client.sync import SyncMemoryClient
from tests.integrations.conftest import NOBODY, ModelServer
from tests.integrations.contract import HALF_AN_EMOJI, ODD_TEXTS

MESSAGES: list[BaseMessage] = [
    SystemMessage("be brief"),
    HumanMessage("I keep bees.", name="ada", additional_kwargs={"a": [1]}),
    HumanMessage([{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "data:,"}}]),
    AIMessage("", tool_calls=[{"name": "f", "args": {"a": {"b": None}}, "id": "c1"}], id="m1"),
    ToolMessage("done", tool_call_id="c1", artifact={"x": 1}, status="error"),
    AIMessage("Hello", response_metadata={"model": "m"}),
    HumanMessage(" "),
]


def new_id() -> str:
    return f"u-{uuid4()}"


def test_history_returns_every_message_until_cleared(blocking: SyncMemoryClient) -> None:
    history = AgentMemoryChatMessageHistory(new_id(), blocking, user_id=new_id())
    assert history.messages == []
    history.add_messages(MESSAGES[:3])
    history.add_messages(MESSAGES[3:])
    assert history.messages == MESSAGES
    assert AgentMemoryChatMessageHistory(history.session_id, blocking, user_id=new_id()).messages == []
    history.clear()
    assert history.messages == []


def test_history_accepts_any_text_as_langchains_own_history_does(blocking: SyncMemoryClient) -> None:
    ours, theirs = AgentMemoryChatMessageHistory(new_id(), blocking, user_id=new_id()), InMemoryChatMessageHistory()
    messages = [HumanMessage(text) for text in ODD_TEXTS]
    messages += [ToolMessage(text, tool_call_id=text) for text in ODD_TEXTS]
    messages += [ChatMessage(text, role=role) for text in ODD_TEXTS[:2] for role in ("critic\n\x1b[1m", "r" * 100, "")]
    for history in (ours, theirs):
        history.add_messages(messages)
    assert ours.messages == theirs.messages
    ours.add_messages([HumanMessage(HALF_AN_EMOJI)])
    assert ours.messages[-1].content == HALF_AN_EMOJI.replace("\ud83d", "\ufffd")


async def test_history_can_be_awaited_with_both_clients(client: MemoryClient, blocking: SyncMemoryClient) -> None:
    for made in (client, blocking):
        history = AgentMemoryChatMessageHistory(new_id(), made, user_id=new_id())
        await history.aadd_messages(MESSAGES)
        assert await history.aget_messages() == MESSAGES
        await history.aclear()
        assert await history.aget_messages() == []
    with pytest.raises(TypeError, match="awaited"):
        AgentMemoryChatMessageHistory("s", client).add_messages(MESSAGES)


@pytest.mark.parametrize("name", ["*", "{}", "@t:{*}", "a|b", "\u00e9", "%2F"])
def test_hostile_ids_are_stored_unchanged(blocking: SyncMemoryClient, name: str) -> None:
    user = new_id()
    AgentMemoryChatMessageHistory(name + user, blocking, user_id=name + user).add_messages(MESSAGES[1:2])
    assert AgentMemoryChatMessageHistory(name + user, blocking, user_id=name + user).messages == MESSAGES[1:2]
    assert AgentMemoryChatMessageHistory(user, blocking, user_id=user).messages == []


async def test_retriever_and_tools_find_only_memories_of_their_user(
    client: MemoryClient, blocking: SyncMemoryClient, model: ModelServer
) -> None:
    ada, bo = new_id(), new_id()
    texts = {"Ada is allergic to peanuts.": ada, "Bo eats peanuts.": bo}
    blocking.memories.create([ClientMemoryRecord(text=text, user_id=user) for text, user in texts.items()])
    for made in (client, blocking):
        (document,) = await AgentMemoryRetriever(client=made, user_id=ada).ainvoke("peanuts")
        assert document.page_content == "Ada is allergic to peanuts."
        assert document.metadata["user_id"] == ada
    assert [found.page_content for found in AgentMemoryRetriever(client=blocking, user_id=bo).invoke("peanuts")] == ["Bo eats peanuts."]
    tools: list[Any] = get_memory_tools(blocking, "s", user_id=ada)
    model.script += [{"name": "search_memory", "arguments": {"query": "peanuts"}}, "None."]
    agent = create_agent(ChatOpenAI(model="m"), tools)
    agent.invoke({"messages": [{"role": "user", "content": "May I eat peanuts?"}]})
    said = str(model.asked[-1]["messages"])
    assert "allergic" in said
    assert "Bo eats" not in said


def test_unreachable_server_raises_at_once() -> None:
    began = time.monotonic()
    nobody = SyncMemoryClient(NOBODY)
    with pytest.raises(MemoryUnavailableError):
        AgentMemoryChatMessageHistory("s", nobody).add_messages(MESSAGES[:1])
    with pytest.raises(MemoryUnavailableError):
        AgentMemoryRetriever(client=nobody).invoke("x")
    assert time.monotonic() - began < 20
