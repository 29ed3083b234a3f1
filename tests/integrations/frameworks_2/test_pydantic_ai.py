"""Test Pydantic AI's message history, toolset and instructions with the memory server."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, ClassVar

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import (
    ImageUrl,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from agent_memory_client import ClientMemoryRecord, MemoryClient
from agent_memory_client.integrations.pydantic_ai import AgentMemoryHistory, get_memory_toolset, memory_instructions
from agent_memory_client.sync import SyncMemoryClient
from tests.integrations.conftest import ModelServer
from tests.integrations.contract import HistoryContract, RecallContract, in_thread, new_id

AT = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
MESSAGES: list[ModelMessage] = [
    ModelRequest(parts=[SystemPromptPart("Be brief.", timestamp=AT), UserPromptPart("I am Ada. \U0001f600", timestamp=AT)], timestamp=AT),
    ModelResponse(
        parts=[ThinkingPart("hm", signature="x"), ToolCallPart("f", {"a": [1, {"b": None}]}, "c1"), ToolCallPart("g", '{"a": 1}', "c2")],
        timestamp=AT,
        model_name="m",
    ),
    ModelRequest(
        parts=[ToolReturnPart("f", {"done": True}, "c1", timestamp=AT), ToolReturnPart("g", "no", "c2", outcome="retried", timestamp=AT)]
    ),
    ModelResponse(parts=[TextPart("Hello Ada")], timestamp=AT),
    ModelRequest(parts=[UserPromptPart(["look", ImageUrl("http://127.0.0.1/i.png")], timestamp=AT)]),
    ModelRequest(parts=[UserPromptPart("", timestamp=AT)]),
]


class TestHistory(HistoryContract):
    messages: ClassVar[Sequence[Any]] = MESSAGES

    def make(self, client: MemoryClient, session_id: str, user_id: str | None) -> Any:
        return AgentMemoryHistory(session_id, client, user_id=user_id)

    async def add(self, history: Any, messages: Sequence[Any]) -> None:
        await history.add(messages)

    async def get(self, history: Any) -> list[Any]:
        return await history.get()

    def say(self, text: str) -> Any:
        return ModelRequest(parts=[UserPromptPart(text, timestamp=AT)])

    async def clear(self, history: Any) -> None:
        await history.clear()

    def shown(self, messages: Sequence[Any]) -> Any:
        return ModelMessagesTypeAdapter.dump_json(list(messages))


class TestBlockingHistory(TestHistory):
    async def add(self, history: Any, messages: Sequence[Any]) -> None:
        await in_thread(history.add_sync, messages)

    async def get(self, history: Any) -> list[Any]:
        return await in_thread(history.get_sync)

    async def clear(self, history: Any) -> None:
        await in_thread(history.clear_sync)


def agent_of(model: ModelServer, **more: Any) -> Agent[Any, str]:
    provider = OpenAIProvider(base_url=model.url, api_key="sk-test-0000")
    return Agent(OpenAIChatModel("m", provider=provider), **more)


class TestInstructions(RecallContract):
    @pytest.fixture(autouse=True)
    def _model(self, model: ModelServer) -> None:
        self.model = model

    async def recall(self, client: MemoryClient, user_id: str, question: str) -> str:
        await agent_of(self.model, instructions=[memory_instructions(client, user_id=user_id)]).run(question)
        return "".join(str(message["content"]) for message in self.model.asked[-1]["messages"] if message["role"] == "system")


async def test_second_run_continues_with_the_stored_history(client: MemoryClient, model: ModelServer) -> None:
    def add(a: int, b: int) -> str:
        return str(a + b)

    history = AgentMemoryHistory(new_id(), client, user_id=new_id())
    agent = agent_of(model, instructions="Be brief.", tools=[add])
    model.script += [{"name": "add", "arguments": {"a": 2, "b": 3}}, "It is 5."]
    result = await agent.run("What is 2 + 3?", message_history=await history.get())
    await history.add(result.new_messages())
    model.script += ["5, as I said."]
    again = await agent.run("Again?", message_history=await history.get())
    assert again.output == "5, as I said."
    sent = model.asked[-1]["messages"]
    assert [message["role"] for message in sent] == ["system", "user", "assistant", "tool", "assistant", "user"]
    assert sent[2]["tool_calls"][0]["function"]["name"] == "add"


async def test_toolset_finds_only_memories_of_its_user(client: MemoryClient, blocking: SyncMemoryClient, model: ModelServer) -> None:
    ada, bo = new_id(), new_id()
    texts = {"Ada is allergic to peanuts.": ada, "Bo eats peanuts.": bo}
    await client.memories.create([ClientMemoryRecord(text=text, user_id=user) for text, user in texts.items()])
    for made in (client, blocking):
        model.script[:] = [{"name": "search_memory", "arguments": {"query": "peanuts"}}, "Peanuts."]
        await agent_of(model, toolsets=[get_memory_toolset(made, "s", user_id=ada)]).run("What may I not eat?")
        answer = model.asked[-1]["messages"][-1]
        assert answer["role"] == "tool"
        assert "allergic to peanuts" in answer["content"]
        assert "Bo eats" not in answer["content"]
    with pytest.raises(ValueError, match="no tool"):
        get_memory_toolset(client, "s", tools=["nonsense"])
