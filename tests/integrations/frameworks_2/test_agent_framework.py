"""Test Agent Framework's history and context providers with the memory server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import pytest
from agent_framework import Agent, Content, Message
from agent_framework.openai import OpenAIChatCompletionClient

from agent_memory_client import ClientMemoryRecord, MemoryClient
from agent_memory_client.errors import MemoryUnavailableError, MemoryValidationError
from agent_memory_client.integrations.agent_framework import AgentMemoryContextProvider, AgentMemoryHistoryProvider
from agent_memory_client.sync import SyncMemoryClient
from tests.integrations.conftest import NOBODY, ModelServer
from tests.integrations.contract import HistoryContract, RecallContract, new_id

MESSAGES = [
    Message("user", ["I am Ada. \U0001f600"], author_name="ada", additional_properties={"a": [1, None]}),
    Message(
        "assistant",
        [
            Content.from_text("hm"),
            Content.from_function_call("c1", "f", arguments={"a": {"b": None}}),
            Content.from_function_call("c2", "g", arguments='{"a": 1}'),
        ],
        message_id="m1",
    ),
    Message("tool", [Content.from_function_result("c1", result="done")]),
    Message("assistant", ["Hello Ada"]),
    Message("user", [Content.from_uri("data:image/png;base64,iVBORw==", media_type="image/png")]),
    Message("user", [""]),
]


class Keyed:
    """A history provider and the key of its session."""

    def __init__(self, provider: AgentMemoryHistoryProvider, key: str) -> None:
        self.provider = provider
        self.key = key


class TestHistory(HistoryContract):
    messages: ClassVar[Sequence[Any]] = MESSAGES

    def make(self, client: MemoryClient, session_id: str, user_id: str | None) -> Any:
        return Keyed(AgentMemoryHistoryProvider(client, user_id=user_id), session_id)

    async def add(self, history: Any, messages: Sequence[Any]) -> None:
        await history.provider.save_messages(history.key, messages)

    async def get(self, history: Any) -> list[Any]:
        return await history.provider.get_messages(history.key)

    def say(self, text: str) -> Any:
        return Message("user", [text])

    async def clear(self, history: Any) -> None:
        await history.provider.clear(history.key)

    def shown(self, messages: Sequence[Any]) -> Any:
        return [message.to_json() for message in messages]


class TestHistoryByABlockingClient(TestHistory):
    def make(self, client: MemoryClient, session_id: str, user_id: str | None) -> Any:
        return super().make(SyncMemoryClient(client.config), session_id, user_id)  # type: ignore[arg-type]


def agent_of(model: ModelServer, *providers: Any, **more: Any) -> Agent:
    chat = OpenAIChatCompletionClient("m", api_key="sk-test-0000", base_url=model.url)
    return Agent(chat, "Be brief.", context_providers=list(providers), **more)


class TestContext(RecallContract):
    @pytest.fixture(autouse=True)
    def _model(self, model: ModelServer) -> None:
        self.model = model

    async def recall(self, client: MemoryClient, user_id: str, question: str) -> str:
        await agent_of(self.model, AgentMemoryContextProvider(client, user_id=user_id)).run(question)
        system = [str(message["content"]) for message in self.model.asked[-1]["messages"] if message["role"] == "system"]
        return "".join(system).removeprefix("Be brief.").strip()


async def test_second_agent_continues_the_session_and_recalls_memories(client: MemoryClient, model: ModelServer) -> None:
    user, key = new_id(), new_id()
    await client.memories.create([ClientMemoryRecord(text="Ada is allergic to peanuts.", user_id=user)])

    def agent() -> Agent:
        history = AgentMemoryHistoryProvider(client, user_id=user)
        return agent_of(model, history, AgentMemoryContextProvider(client, user_id=user, tools=["search_memory"]))

    model.script += [{"name": "search_memory", "arguments": {"query": "peanuts"}}, "Peanuts."]
    first = agent()
    assert (await first.run("What may I not eat?", session=first.create_session(session_id=key))).text == "Peanuts."
    assert "allergic" in model.asked[-1]["messages"][-1]["content"]
    model.script += ["As I said."]
    second = agent()
    assert (await second.run("Again?", session=second.create_session(session_id=key))).text == "As I said."
    sent = [message["role"] for message in model.asked[-1]["messages"] if message["role"] != "system"]
    assert sent == ["user", "assistant", "tool", "assistant", "user"]


async def test_unreachable_server_or_missing_session_raises(client: MemoryClient, model: ModelServer) -> None:
    async with MemoryClient(NOBODY) as nobody:
        with pytest.raises(MemoryUnavailableError):
            await agent_of(model, AgentMemoryHistoryProvider(nobody)).run("hello")
        with pytest.raises(MemoryUnavailableError):
            await agent_of(model, AgentMemoryContextProvider(nobody, needed=True)).run("hello")
    with pytest.raises(MemoryValidationError):
        await AgentMemoryHistoryProvider(client).get_messages(None)
