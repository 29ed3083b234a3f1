"""Test the middleware for AgentScope 2.x with the memory server."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, ClassVar

from agentscope.agent import Agent
from agentscope.credential import OpenAICredential
from agentscope.message import AssistantMsg, TextBlock, ToolCallBlock, ToolResultBlock, UserMsg
from agentscope.model import OpenAIChatModel
from agentscope.tool import Toolkit

from agent_memory_client import ClientMemoryRecord, MemoryClient
from agent_memory_client.integrations.agentscope_middleware import AgentMemoryMiddleware
from agent_memory_client.sync import SyncMemoryClient
from tests.integrations.conftest import NOBODY, ModelServer
from tests.integrations.contract import HistoryContract, RecallContract, new_id

MESSAGES = [
    UserMsg("ada", "I am Ada. \U0001f600", metadata={"a": [1, None]}),
    AssistantMsg(
        "bot",
        [
            TextBlock(text="hm"),
            ToolCallBlock(id="c1", name="f", input='{"a": {"b": null}}'),
            ToolResultBlock(id="c1", name="f", output=[TextBlock(text="done")]),
            TextBlock(text="Hello Ada"),
        ],
    ),
    UserMsg("ada", ""),
]


class TestHistory(HistoryContract):
    messages: ClassVar[Sequence[Any]] = MESSAGES

    def make(self, client: MemoryClient, session_id: str, user_id: str | None) -> Any:
        return AgentMemoryMiddleware(session_id, client, user_id=user_id, needed=True)

    async def add(self, history: Any, messages: Sequence[Any]) -> None:
        await history.keep(messages)

    async def get(self, history: Any) -> list[Any]:
        return await history.history()

    def say(self, text: str) -> Any:
        return UserMsg("ada", text)

    async def clear(self, history: Any) -> None:
        await history.clear()


class TestHistoryByABlockingClient(TestHistory):
    def make(self, client: MemoryClient, session_id: str, user_id: str | None) -> Any:
        return super().make(SyncMemoryClient(client.config), session_id, user_id)  # type: ignore[arg-type]


class TestPrompt(RecallContract):
    async def recall(self, client: MemoryClient, user_id: str, question: str) -> str:
        state = SimpleNamespace(context=[UserMsg("u", question), AssistantMsg("bot", "Hm.")])
        return await AgentMemoryMiddleware("s", client, user_id=user_id).on_system_prompt(SimpleNamespace(state=state), "")


async def agent_of(model: ModelServer, middleware: AgentMemoryMiddleware) -> Agent:
    credential = OpenAICredential(api_key="sk-test-0000", base_url=model.url)
    chat = OpenAIChatModel(credential, "m", stream=False)
    toolkit = Toolkit(tools=await middleware.list_tools())
    return Agent("helper", "Be brief.", chat, toolkit=toolkit, middlewares=[middleware])


async def test_agent_recalls_memories_and_stores_its_history(client: MemoryClient, model: ModelServer) -> None:
    user, session = new_id(), new_id()
    await client.memories.create([ClientMemoryRecord(text="Ada is allergic to peanuts.", user_id=user)])
    middleware = AgentMemoryMiddleware(session, client, user_id=user, tools=["search_memory"])
    agent = await agent_of(model, middleware)
    model.script += [{"name": "search_memory", "arguments": {"query": "peanuts"}}, "No peanuts."]
    answer = await agent.reply(UserMsg("ada", "May I eat peanuts?"))
    assert answer.get_text_content() == "No peanuts."
    sent = model.asked[-1]["messages"]
    assert "allergic to peanuts" in str([message for message in sent if message["role"] == "system"])
    assert "allergic to peanuts" in str([message for message in sent if message["role"] == "tool"])
    kept = await middleware.history()
    assert [message.role for message in kept] == ["user", "assistant"]
    assert kept[1].get_content_blocks("tool_call")[0].name == "search_memory"


async def test_agent_answers_if_the_server_is_unreachable(model: ModelServer) -> None:
    async with MemoryClient(NOBODY) as nobody:
        agent = await agent_of(model, AgentMemoryMiddleware("s", nobody, user_id="u"))
        model.script += ["Hello."]
        assert (await agent.reply(UserMsg("ada", "Hi, I am Ada."))).get_text_content() == "Hello."
