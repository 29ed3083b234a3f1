"""Test AgentScope 1.x's short-term and long-term memory with the memory server."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from importlib.metadata import requires
from typing import Any, ClassVar

import pytest
from agentscope.agent import ReActAgent
from agentscope.formatter import OpenAIChatFormatter
from agentscope.memory import InMemoryMemory
from agentscope.message import Msg, TextBlock, ToolResultBlock, ToolUseBlock
from agentscope.model import OpenAIChatModel
from packaging.requirements import Requirement

from agent_memory_client import MemoryClient
from agent_memory_client.integrations.agentscope import AgentMemoryLongTermMemory, AgentMemoryMemory
from agent_memory_client.sync import SyncMemoryClient
from tests.integrations.conftest import ModelServer
from tests.integrations.contract import HistoryContract, RecallContract, new_id

CALL = ToolUseBlock(type="tool_use", id="c1", name="f", input={"a": {"b": None}})
RESULT = ToolResultBlock(type="tool_result", id="c1", name="f", output=[TextBlock(type="text", text="done")])
MESSAGES = [
    Msg("ada", "I am Ada. \U0001f600", "user", metadata={"a": [1, None]}),
    Msg("bot", [TextBlock(type="text", text="hm"), CALL], "assistant"),
    Msg("system", [RESULT], "system"),
    Msg("bot", "Hello Ada", "assistant"),
    Msg("ada", "", "user"),
]


class TestMemory(HistoryContract):
    messages: ClassVar[Sequence[Any]] = MESSAGES

    def make(self, client: MemoryClient, session_id: str, user_id: str | None) -> Any:
        return AgentMemoryMemory(session_id, client, user_id=user_id)

    async def add(self, history: Any, messages: Sequence[Any]) -> None:
        await history.add(list(messages))

    async def get(self, history: Any) -> list[Any]:
        return await history.get_memory()

    def say(self, text: str) -> Any:
        return Msg("ada", text, "user")

    async def clear(self, history: Any) -> None:
        await history.clear()

    def shown(self, messages: Sequence[Any]) -> Any:
        return [message.to_dict() for message in messages]


class TestMemoryByABlockingClient(TestMemory):
    def make(self, client: MemoryClient, session_id: str, user_id: str | None) -> Any:
        return super().make(SyncMemoryClient(client.config), session_id, user_id)  # type: ignore[arg-type]


class TestRetrieve(RecallContract):
    raises_without_a_server = True

    async def recall(self, client: MemoryClient, user_id: str, question: str) -> str:
        return await AgentMemoryLongTermMemory(client, user_id=user_id).retrieve(Msg("u", question, "user"))


class TestTool(RecallContract):
    async def recall(self, client: MemoryClient, user_id: str, question: str) -> str:
        response = await AgentMemoryLongTermMemory(client, user_id=user_id).retrieve_from_memory(question.split())
        text = response.content[0]["text"]
        return "" if text.startswith("Error retrieving memory: the memory server") else text


async def test_marks_behave_as_in_agentscopes_own_memory(client: MemoryClient) -> None:
    session, user = new_id(), new_id()
    ours, theirs = AgentMemoryMemory(session, client, user_id=user), InMemoryMemory()
    for memory in (ours, theirs):
        await memory.add(MESSAGES[:2], marks=["a", "b"])
        await memory.add(MESSAGES[2], marks="c")
        await memory.add(MESSAGES[:4])
        await memory.update_compressed_summary("So far.")
    steps = [
        lambda memory: memory.update_messages_mark("x", "a"),
        lambda memory: memory.update_messages_mark("y", msg_ids=[MESSAGES[3].id]),
        lambda memory: memory.update_messages_mark(None, "b", [MESSAGES[0].id]),
        lambda memory: memory.update_messages_mark("c"),
        lambda memory: memory.delete_by_mark("b"),
        lambda memory: memory.delete([MESSAGES[2].id, "nothing"]),
        lambda memory: memory.size(),
    ]
    for step in steps:
        assert await step(ours) == await step(theirs)
        for mark, excluded in ((None, None), ("x", None), (None, "y"), ("c", "x")):
            found = [[each.content for each in await memory.get_memory(mark, excluded)] for memory in (ours, theirs)]
            assert found[0] == found[1]
    with pytest.raises(TypeError):
        await ours.add(MESSAGES[4], marks=3)  # type: ignore[arg-type]
    again = AgentMemoryMemory(session, client, user_id=user)
    assert (await again.get_memory())[0].content == "So far."
    for memory in (again, theirs):
        await memory.add([MESSAGES[0], MESSAGES[0]], allow_duplicates=True)
        await memory.add(MESSAGES[3], marks="z", allow_duplicates=True)
    assert await again.size() == await theirs.size()
    assert [each.id for each in await again.get_memory()][1:] == [each.id for each in await theirs.get_memory()][1:]
    assert await again.delete([MESSAGES[0].id]) == await theirs.delete([MESSAGES[0].id])
    for memory in (again, theirs):
        await memory.clear()
        assert [each.content for each in await memory.get_memory()] == ["So far."]
        assert await memory.size() == 0


def test_agentscope_extra_installs_everything_that_agentscope_imports() -> None:
    required = [Requirement(each) for each in requires("agent-memory-api-client") or ()]
    brought = {each.name: each for each in required if each.marker is not None and each.marker.evaluate({"extra": "agentscope"})}
    assert {"agentscope", "mcp", "greenlet", "tqdm"} <= brought.keys()
    assert "2.0" not in brought["mcp"].specifier, "its 1.x imports the first line of mcp"


@pytest.mark.parametrize("blocking", [False, True])
async def test_recorded_messages_are_retrieved_by_their_user_only(client: MemoryClient, *, blocking: bool) -> None:
    made = SyncMemoryClient(client.config) if blocking else client
    user = new_id()
    memory, other = (AgentMemoryLongTermMemory(made, user_id=each) for each in (user, new_id()))
    said = [Msg("user", "我喜欢吃蔬菜，但是不喜欢吃胡萝卜", "user"), None]
    await memory.record(said)
    await memory.record(said)
    await memory.record(None)
    question = Msg("user", "我喜欢吃什么蔬菜", "user")
    assert await memory.retrieve(question) == said[0].content  # type: ignore[union-attr]
    assert await other.retrieve(question) == ""
    assert await memory.retrieve(None) == ""
    assert "Recorded 2" in (await memory.record_to_memory("", ["Ada keeps bees.", "Ada lives in Oslo."])).content[0]["text"]
    assert "bees" in (await memory.retrieve_from_memory(["bees", "Oslo"])).content[0]["text"]
    assert "Error" in (await memory.record_to_memory("", [""])).content[0]["text"]


async def test_second_agent_continues_the_session_and_recalls_memories(client: MemoryClient, model: ModelServer) -> None:
    user, session = new_id(), new_id()

    def agent() -> ReActAgent:
        return ReActAgent(
            "helper",
            "Be brief.",
            OpenAIChatModel("m", api_key="sk-test-0000", stream=False, client_kwargs={"base_url": model.url}),
            OpenAIChatFormatter(),
            memory=AgentMemoryMemory(session, client, user_id=user),
            long_term_memory=AgentMemoryLongTermMemory(client, user_id=user),
            long_term_memory_mode="both",
        )

    model.script += [{"name": "record_to_memory", "arguments": {"thinking": "x", "content": ["Ada keeps bees."]}}, "Noted."]
    assert (await agent()(Msg("ada", "I keep bees.", "user"))).get_text_content() == "Noted."
    model.script += ["Bees."]
    assert (await asyncio.wait_for(agent()(Msg("ada", "What do I keep? Bees?", "user")), 60)).get_text_content() == "Bees."
    sent = model.asked[-1]["messages"]
    assert "tool" in [message["role"] for message in sent]
    assert "Ada keeps bees." in str(sent)
