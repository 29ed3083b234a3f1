"""Test that tools accept and return sessions with messages in chat API formats."""

from __future__ import annotations

from ulid import ULID

from agent_memory_client.models import MemoryMessage
from tests.interfaces.client.models.test_wire_chat_messages import CHATS
from tests.interfaces.mcp.conftest import Server
from tests.support.mcp import over_http

EVERY = [message for chat in CHATS.values() for message in chat]


async def test_session_messages_round_trip_unchanged(server: Server) -> None:
    place = {"session_id": str(ULID()), "user_id": "ada"}
    async with over_http(f"{server.url}/mcp") as session:
        stored = await session.call("set_working_memory", messages=EVERY, **place)
        read = await session.call("get_working_memory", **place)
        for answer in (stored, read):
            assert [MemoryMessage.model_validate(message).to_chat() for message in answer["messages"]] == EVERY
            assert all(isinstance(message["content"], str) for message in answer["messages"])


async def test_prompt_keeps_tool_calls_and_roles_of_messages(server: Server) -> None:
    place = {"session_id": str(ULID()), "user_id": "ada"}
    async with over_http(f"{server.url}/mcp") as session:
        await session.call("set_working_memory", messages=CHATS["openai tool calls"], **place)
        where = {"session_id": {"eq": place["session_id"]}, "user_id": {"eq": "ada"}}
        prompt = await session.call("memory_prompt", query="And now?", include_long_term_search=False, **where)
        asked, called, told, said, _ = prompt["messages"]
        assert "tool_calls" not in asked
        assert called["tool_calls"] == CHATS["openai tool calls"][1]["tool_calls"]
        assert (told["tool_call_id"], told["original_role"], told["role"]) == ("call_1", "tool", "assistant")
        assert said["annotations"] == []


async def test_invalid_message_fields_are_rejected_by_name(server: Server) -> None:
    async with over_http(f"{server.url}/mcp") as session:
        for message, field in (
            ({"role": "user", "content": None}, "messages.0.content"),
            ({"role": "user", "content": [{"type": "text", "text": 5}]}, "messages.0.content.0.text"),
            ({"role": "assistant", "content": ""}, "messages.0.content"),
        ):
            assert f"422: {field}:" in await session.error("set_working_memory", session_id="hostile", messages=[message])
