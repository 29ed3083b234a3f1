"""Chapter 3: working memory. A session has messages, data, memories and a time to live."""

from __future__ import annotations

import asyncio

import pytest

from agent_memory_client import ClientMemoryRecord, MemoryAPIClient, MemoryMessage, MemoryNotFoundError, WorkingMemory
from tests.support.waiting import settled, wait_until


def said(text: str) -> MemoryMessage:
    return MemoryMessage(role="user", content=text)


async def test_put_replaces_the_whole_session(memory: MemoryAPIClient) -> None:
    await memory.put_working_memory("trip", WorkingMemory(session_id="trip", messages=[said("first")], data={"step": 1}))
    await memory.put_working_memory("trip", WorkingMemory(session_id="trip", messages=[said("second")]))

    session = await memory.get_working_memory("trip")

    assert [message.content for message in session.messages] == ["second"]
    assert not session.data, "what a PUT does not name is gone"


async def test_append_adds_messages_and_keeps_everything_else(memory: MemoryAPIClient) -> None:
    await memory.put_working_memory("trip", WorkingMemory(session_id="trip", messages=[said("first")], data={"step": 1}))

    done = await memory.append_messages("trip", [{"role": "assistant", "content": "second"}])

    session = await memory.get_working_memory("trip")
    assert done.total_messages == 2
    assert [message.content for message in session.messages] == ["first", "second"]
    assert session.data == {"step": 1}


async def test_concurrent_appends_lose_no_message(memory: MemoryAPIClient) -> None:
    texts = {f"message number {number}" for number in range(40)}

    await asyncio.gather(*(memory.append_messages("busy", [{"role": "user", "content": text}]) for text in texts))

    session = await memory.get_working_memory("busy")
    assert {message.content for message in session.messages} == texts
    assert len(session.messages) == 40


async def test_context_window_returns_only_the_newest_messages(memory: MemoryAPIClient) -> None:
    await memory.append_messages("long", [{"role": "user", "content": f"{'word ' * 20}{number}"} for number in range(20)])

    view = await memory.get_working_memory("long", context_window_max=200)

    assert 0 < len(view.messages) < 20
    assert view.messages[-1].content.endswith("19"), "the oldest messages are left out, the newest never"
    assert len((await memory.get_working_memory("long")).messages) == 20, "a view changes nothing"


async def test_session_data_can_be_merged_without_changing_messages(memory: MemoryAPIClient) -> None:
    await memory.append_messages("order", [{"role": "user", "content": "A pizza, please."}])

    await memory.update_working_memory_data("order", {"size": "large", "address": {"city": "Lisbon"}})
    await memory.update_working_memory_data("order", {"address": {"street": "Rua Augusta"}}, merge_strategy="deep_merge")

    session = await memory.get_working_memory("order")
    assert session.data == {"size": "large", "address": {"city": "Lisbon", "street": "Rua Augusta"}}
    assert len(session.messages) == 1


async def test_structured_memories_of_a_session_become_long_term_memories(memory: MemoryAPIClient) -> None:
    fact = ClientMemoryRecord(text="Ada prefers trains to planes", topics=["travel"], memory_type="semantic")

    await memory.put_working_memory("trip", WorkingMemory(session_id="trip", user_id="ada", memories=[fact]))
    await settled(memory)

    stored = await memory.get_long_term_memory(fact.id)
    assert (stored.text, stored.user_id, stored.session_id) == (fact.text, "ada", "trip")
    session = await memory.get_working_memory("trip", user_id="ada")
    assert session.memories[0].persisted_at is not None


async def test_session_expires_after_its_ttl(memory: MemoryAPIClient) -> None:
    await memory.put_working_memory("brief", WorkingMemory(session_id="brief", messages=[said("soon gone")], ttl_seconds=1))
    assert (await memory.get_working_memory("brief")).ttl_seconds == 1

    async def gone() -> bool:
        try:
            await memory.get_working_memory("brief")
        except MemoryNotFoundError:
            return True
        return False

    await wait_until(gone, "the session's end")


async def test_missing_session_raises_or_is_created(memory: MemoryAPIClient) -> None:
    with pytest.raises(MemoryNotFoundError):
        await memory.get_working_memory("nobody")

    created, session = await memory.get_or_create_working_memory("nobody")
    assert created
    assert session.messages == []
    created, _ = await memory.get_or_create_working_memory("nobody")
    assert not created
