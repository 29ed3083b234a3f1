"""Test LlamaIndex's chat stores, memory and memory block with the memory server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import pytest
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ImageBlock, MessageRole, ThinkingBlock, ToolCallBlock
from llama_index.core.llms import ChatMessage
from llama_index.core.llms import TextBlock as Text
from llama_index.core.memory import Memory
from llama_index.core.storage.chat_store.base_db import MessageStatus
from llama_index.llms.openai_like import OpenAILike

from agent_memory_client import MemoryClient
from agent_memory_client.integrations.llama_index import AgentMemoryBlock, AgentMemoryChatStore, AgentMemoryDBChatStore
from agent_memory_client.sync import SyncMemoryClient
from tests.integrations.conftest import ModelServer
from tests.integrations.contract import HistoryContract, RecallContract, in_thread, new_id

MESSAGES = [
    ChatMessage(role=MessageRole.SYSTEM, content="Be brief."),
    ChatMessage(role=MessageRole.USER, content="I am Ada. \U0001f600", additional_kwargs={"name": "ada", "a": [1, None]}),
    ChatMessage(
        role=MessageRole.ASSISTANT,
        blocks=[
            ThinkingBlock(content="hm"),
            ToolCallBlock(tool_call_id="c1", tool_name="f", tool_kwargs={"a": {"b": None}}),
            ToolCallBlock(tool_call_id="c2", tool_name="g", tool_kwargs='{"a": 1}'),
        ],
    ),
    ChatMessage(role=MessageRole.TOOL, content="done", additional_kwargs={"tool_call_id": "c1"}),
    ChatMessage(role=MessageRole.USER, blocks=[Text(text="look"), ImageBlock(url="http://127.0.0.1/i.png")]),
    ChatMessage(role=MessageRole.ASSISTANT, content="Hello Ada"),
    ChatMessage(role=MessageRole.USER, content=""),
]


class Keyed:
    """A store and a key in it."""

    def __init__(self, store: Any, key: str) -> None:
        self.store = store
        self.key = key


class TestAwaitedStore(HistoryContract):
    messages: ClassVar[Sequence[Any]] = MESSAGES

    def make(self, client: MemoryClient, session_id: str, user_id: str | None) -> Any:
        return Keyed(AgentMemoryChatStore(client, user_id=user_id), session_id)

    async def add(self, history: Any, messages: Sequence[Any]) -> None:
        for message in messages:
            await history.store.async_add_message(history.key, message)

    async def get(self, history: Any) -> list[Any]:
        return await history.store.aget_messages(history.key)

    def say(self, text: str) -> Any:
        return ChatMessage(role=MessageRole.USER, content=text)

    async def clear(self, history: Any) -> None:
        await history.store.adelete_messages(history.key)


class TestBlockingStore(TestAwaitedStore):
    async def add(self, history: Any, messages: Sequence[Any]) -> None:
        for message in messages:
            await in_thread(history.store.add_message, history.key, message)

    async def get(self, history: Any) -> list[Any]:
        return await in_thread(history.store.get_messages, history.key)

    async def clear(self, history: Any) -> None:
        await in_thread(history.store.delete_messages, history.key)


class TestMemory(TestAwaitedStore):
    """Tests LlamaIndex's `Memory` backed by the store."""

    def make(self, client: MemoryClient, session_id: str, user_id: str | None) -> Any:
        return Keyed(AgentMemoryDBChatStore(SyncMemoryClient(client.config), user_id=user_id), session_id)

    def memory(self, history: Any) -> Memory:
        if not history.key:
            pytest.skip("LlamaIndex makes an id of its own")
        return Memory.from_defaults(session_id=history.key, chat_store=history.store)

    async def add(self, history: Any, messages: Sequence[Any]) -> None:
        await self.memory(history).aput_messages(list(messages))

    async def get(self, history: Any) -> list[Any]:
        return await self.memory(history).aget_all()

    async def clear(self, history: Any) -> None:
        await self.memory(history).areset()

    refused: ClassVar[Sequence[str]] = ["..", "\x00", "x" * 2000]


class TestBlock(RecallContract):
    async def recall(self, client: MemoryClient, user_id: str, question: str) -> str:
        block = AgentMemoryBlock(client, user_id=user_id)
        return await block.aget([ChatMessage(role="user", content=question), ChatMessage(role="assistant", content="Hm.")])


@pytest.mark.parametrize("blocking", [False, True])
async def test_chat_store_supports_every_call(client: MemoryClient, *, blocking: bool) -> None:
    user = new_id()
    store = AgentMemoryChatStore(SyncMemoryClient(client.config) if blocking else client, user_id=user)
    assert await store.aget_keys() == []
    await store.aset_messages("k", MESSAGES)
    await store.aset_messages("k2", MESSAGES[:1])
    assert sorted(await store.aget_keys()) == sorted(await in_thread(store.get_keys)) == ["k", "k2"]
    assert await store.adelete_message("k", 1) == MESSAGES[1]
    assert await in_thread(store.delete_message, "k", 0) == MESSAGES[0]
    assert await store.adelete_last_message("k") == MESSAGES[-1]
    assert await in_thread(store.delete_last_message, "k") == MESSAGES[-2]
    assert await store.adelete_message("k", 99) is None
    assert await store.adelete_message("nothing", 0) is None
    assert await store.aget_messages("k") == MESSAGES[2:-2]
    await in_thread(store.set_messages, "k", MESSAGES[:1])
    assert await store.adelete_messages("k") == MESSAGES[:1]
    assert await store.adelete_messages("k") is None


async def test_memory_store_archives_counts_and_deletes_messages(client: MemoryClient) -> None:
    store, key = AgentMemoryDBChatStore(client, user_id=new_id()), new_id()
    await store.add_messages(key, MESSAGES)
    await store.add_message(key, MESSAGES[0], MessageStatus.ARCHIVED)
    assert await store.archive_oldest_messages(key, 2) == MESSAGES[:2]
    assert await store.get_messages(key) == MESSAGES[2:]
    assert await store.get_messages(key, limit=1, offset=1) == MESSAGES[3:4]
    assert await store.get_messages(key, MessageStatus.ARCHIVED) == [*MESSAGES[:2], MESSAGES[0]]
    assert await store.count_messages(key, None) == len(MESSAGES) + 1
    assert await store.delete_oldest_messages(key, 1) == MESSAGES[2:3]
    assert await store.delete_message(key, 0) == MESSAGES[0]
    await store.delete_messages(key, MessageStatus.ARCHIVED)
    assert await store.get_messages(key, None) == MESSAGES[3:]
    assert await store.get_keys() == [key]


async def test_messages_that_leave_the_queue_are_stored(client: MemoryClient) -> None:
    user, session = new_id(), new_id()
    block = AgentMemoryBlock(client, user_id=user, keep_messages=True)
    memory = Memory.from_defaults(session_id=session, token_limit=60, token_flush_size=10, memory_blocks=[block])
    said = [ChatMessage(role="user" if n % 2 == 0 else "assistant", content=f"word {n} " * 5) for n in range(8)]
    for message in said:
        await memory.aput(message)
    kept = await AgentMemoryChatStore(client, user_id=user).aget_messages(session)
    assert kept
    assert [message.content for message in kept] == [message.content for message in said[: len(kept)]]


async def test_second_agent_continues_the_stored_conversation(client: MemoryClient, model: ModelServer) -> None:
    def add(a: int, b: int) -> str:
        """Adds."""
        return str(a + b)

    store, session = AgentMemoryDBChatStore(client, user_id=new_id()), new_id()
    llm = OpenAILike(model="m", api_base=model.url, api_key="sk-test-0000", is_chat_model=True, is_function_calling_model=True)
    agent = FunctionAgent(llm=llm, tools=[add], streaming=False)
    model.script += [{"name": "add", "arguments": {"a": 2, "b": 3}}, "It is 5."]
    assert str(await agent.run("What is 2 + 3?", memory=Memory.from_defaults(session_id=session, chat_store=store))) == "It is 5."
    model.script += ["5, as I said."]
    assert str(await agent.run("Again?", memory=Memory.from_defaults(session_id=session, chat_store=store))) == "5, as I said."
    sent = model.asked[-1]["messages"]
    assert [message["role"] for message in sent] == ["user", "assistant", "tool", "assistant", "user"]
    assert sent[1]["tool_calls"][0]["function"]["name"] == "add"
