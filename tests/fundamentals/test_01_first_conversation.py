"""Chapter 1: a conversation. A session stores messages in order, and each turn is one append."""

from __future__ import annotations

from agent_memory_client import MemoryAPIClient


async def test_health_and_readiness_checks_succeed(memory: MemoryAPIClient) -> None:
    assert (await memory.health_check()).now > 0
    assert (await memory.ready())["ready"] is True


async def test_session_is_created_by_its_first_message(memory: MemoryAPIClient) -> None:
    await memory.append_messages("kitchen", [{"role": "user", "content": "I want to learn to bake sourdough bread."}], user_id="ada")
    await memory.append_messages("kitchen", [{"role": "assistant", "content": "Then start with a rye starter."}], user_id="ada")

    session = await memory.get_working_memory("kitchen", user_id="ada")

    assert [(message.role, message.content) for message in session.messages] == [
        ("user", "I want to learn to bake sourdough bread."),
        ("assistant", "Then start with a rye starter."),
    ]
    assert session.user_id == "ada"
    assert session.context is None, "a short session needs no summary"


async def test_prompt_has_the_format_of_chat_models(memory: MemoryAPIClient) -> None:
    await memory.append_messages("kitchen", [{"role": "user", "content": "My oven only reaches 200 degrees."}], user_id="ada")

    prompt = await memory.memory_prompt("Which bread can I bake?", session_id="kitchen", user_id="ada")

    assert prompt.to_openai() == [
        {"role": "user", "content": "My oven only reaches 200 degrees."},
        {"role": "user", "content": "Which bread can I bake?"},
    ]


async def test_repeated_append_changes_nothing(memory: MemoryAPIClient) -> None:
    turn = {"id": "turn-1", "role": "user", "content": "The starter is five days old.", "created_at": "2026-03-01T09:00:00Z"}

    first = await memory.append_messages("kitchen", [turn], user_id="ada")
    again = await memory.append_messages("kitchen", [turn], user_id="ada")

    assert (first.appended, again.appended) == (1, 0)
    assert again.total_messages == 1
