"""Chapter 6: long sessions. Messages beyond the context window are summarized and remembered."""

from __future__ import annotations

from agent_memory_client import MemoryAPIClient
from tests.support.waiting import settled

WINDOW = 1000
TOPICS = ["the garden", "the violin lessons", "the broken boiler", "the trip to Kyoto", "the new bakery", "the tax letter"]


async def talk(memory: MemoryAPIClient, first: int, count: int) -> None:
    """Append turns of about 25 tokens one at a time, and wait for the background work."""
    for number in range(first, first + count):
        text = f"Note {number}: today we talked for a while about {TOPICS[number % len(TOPICS)]} and decided what to do next week."
        turn = {"id": f"n{number}", "role": "user", "content": text}
        await memory.append_messages("diary", [turn], user_id="ada", context_window_max=WINDOW)
    await settled(memory)


async def test_session_stays_within_its_window(memory: MemoryAPIClient) -> None:
    await talk(memory, 0, 60)

    session = await memory.get_working_memory("diary", user_id="ada")
    view = await memory.get_working_memory("diary", user_id="ada", context_window_max=WINDOW)

    assert session.context, "the oldest messages became the summary"
    assert 0 < len(session.messages) < 60
    assert session.messages[-1].id == "n59", "the newest messages stay as they are"
    assert len(view.messages) == len(session.messages), "and all of them fit"
    prompt = await memory.memory_prompt("What now?", session_id="diary", user_id="ada", context_window_max=WINDOW)
    assert prompt.to_openai()[0]["content"].endswith(session.context)


async def test_summary_grows_with_the_conversation(memory: MemoryAPIClient) -> None:
    await talk(memory, 0, 45)
    first = await memory.get_working_memory("diary", user_id="ada")
    await talk(memory, 45, 45)
    second = await memory.get_working_memory("diary", user_id="ada")

    assert first.context
    assert second.context
    assert first.context != second.context
    assert first.messages[0].id != second.messages[0].id


async def test_summarizing_loses_no_message_memory(memory: MemoryAPIClient) -> None:
    await talk(memory, 0, 60)

    session = await memory.get_working_memory("diary", user_id="ada")
    remembered = {record.extracted_from[0] async for record in memory.search_all_long_term_memories("") if record.extracted_from}

    assert remembered == {f"n{number}" for number in range(60)}
    assert {message.id for message in session.messages} < remembered


async def test_repeated_append_of_a_summarized_message_is_ignored(memory: MemoryAPIClient) -> None:
    await talk(memory, 0, 60)
    assert "n0" not in [message.id for message in (await memory.get_working_memory("diary", user_id="ada")).messages]

    text = f"Note 0: today we talked for a while about {TOPICS[0]} and decided what to do next week."
    late = await memory.append_messages("diary", [{"id": "n0", "role": "user", "content": text}], user_id="ada")

    assert late.appended == 0
