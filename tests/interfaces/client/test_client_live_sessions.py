"""Test sessions with both clients against a real server."""

from __future__ import annotations

import asyncio

import pytest

from agent_memory_client import MemoryAPIClient, MemoryClient, MemoryClientConfig
from agent_memory_client.errors import MemoryNotFoundError, MemoryPreconditionFailedError, MemoryServerError
from agent_memory_client.models import ClientMemoryRecord, MemoryMessage, MemoryRecord, MemoryStrategyConfig, WorkingMemory, new_id
from tests.support.waiting import wait_until

TURN = [
    {"role": "user", "content": "I moved to Lisbon and work on tide gauges."},
    {"role": "assistant", "content": "Noted: Lisbon, tide gauges."},
]


async def test_health_and_ready_succeed(memory: MemoryAPIClient) -> None:
    assert (await memory.health_check()).now > 1_600_000_000_000
    assert (await memory.ready())["ready"] is True


async def test_a_session_is_stored_read_listed_and_deleted(memory: MemoryAPIClient) -> None:
    session = WorkingMemory(session_id="trip", messages=[MemoryMessage(role="user", content="x")], data={"n": 1}, ttl_seconds=3600)
    stored = await memory.put_working_memory("trip", session, user_id="ada", model_name="any-model", context_window_max=8000)
    assert (stored.session_id, stored.user_id, stored.namespace) == ("trip", "ada", memory.config.default_namespace)
    assert stored.context_percentage_total_used is not None
    read = await memory.get_working_memory("trip", user_id="ada")
    assert [message.content for message in read.messages] == ["x"]
    assert (read.data, read.ttl_seconds) == ({"n": 1}, 3600)
    listed = await memory.list_sessions(limit=5, user_id="ada")
    assert (listed.sessions, listed.total) == (["trip"], 1)
    assert (await memory.list_sessions(namespace="elsewhere")).sessions == []
    assert (await memory.delete_working_memory("trip", user_id="ada")).status == "ok"
    with pytest.raises(MemoryNotFoundError):
        await memory.get_working_memory("trip", user_id="ada")


async def test_get_or_create_creates_a_session_once(memory: MemoryAPIClient) -> None:
    strategy = MemoryStrategyConfig(strategy="preferences")
    created, session = await memory.get_or_create_working_memory("new", user_id="ada", long_term_memory_strategy=strategy)
    assert (created, session.messages) == (True, [])
    created, session = await memory.get_or_create_working_memory("new", user_id="ada")
    assert (created, session.long_term_memory_strategy.strategy) == (False, "preferences")


async def test_parallel_appends_keep_every_message(memory: MemoryAPIClient) -> None:
    await asyncio.gather(*(memory.append_messages("busy", [{"role": "user", "content": f"m{n}"}], user_id="ada") for n in range(12)))
    session = await memory.append_messages_to_working_memory("busy", [{"role": "user", "content": "last"}], user_id="ada")
    assert {message.content for message in session.messages} == {*(f"m{n}" for n in range(12)), "last"}
    newest = await memory.get_working_memory("busy", user_id="ada", recent_messages_limit=2)
    assert [message.content for message in newest.messages][-1:] == ["last"]
    assert len(newest.messages) == 2


async def test_append_ignores_a_repeated_message_id(memory: MemoryAPIClient) -> None:
    message = MemoryMessage(role="user", content="once", id="m-1")
    assert (await memory.append_messages("twice", [message])).appended == 1
    assert (await memory.append_messages("twice", [message])).appended == 0


async def test_data_updates_leave_messages_unchanged(memory: MemoryAPIClient) -> None:
    await memory.append_messages("order", TURN, user_id="ada")
    await memory.update_working_memory_data("order", {"a": {"x": 1}, "b": 2}, user_id="ada")
    await memory.update_working_memory_data("order", {"a": {"y": 2}}, merge_strategy="deep_merge", user_id="ada")
    session = await memory.get_working_memory("order", user_id="ada")
    assert session.data == {"a": {"x": 1, "y": 2}, "b": 2}
    assert len(session.messages) == 2
    assert (await memory.update_working_memory_data("order", {"c": 3}, merge_strategy="replace", user_id="ada")).data == {"c": 3}
    assert (await memory.set_working_memory_data("plain", {"d": 4})).data == {"d": 4}
    assert (await memory.set_working_memory_data("plain", {"e": 5}, preserve_existing=False)).data == {"e": 5}


async def test_parallel_data_updates_keep_every_key(memory: MemoryAPIClient) -> None:
    await memory.put_working_memory("shared", WorkingMemory(session_id="shared", user_id="ada"))
    await asyncio.gather(*(memory.update_working_memory_data("shared", {f"k{n}": n}, user_id="ada") for n in range(5)))
    assert (await memory.get_working_memory("shared", user_id="ada")).data == {f"k{n}": n for n in range(5)}


async def test_put_with_stale_version_fails(memory: MemoryAPIClient) -> None:
    session = await memory.put_working_memory("seen", WorkingMemory(session_id="seen"))
    with pytest.raises(MemoryPreconditionFailedError):
        await memory.put_working_memory("seen", session, if_match='"999"')


async def test_session_memories_are_added_and_promoted(memory: MemoryAPIClient) -> None:
    note = ClientMemoryRecord(text="Ada prefers window seats on trains.", memory_type="semantic", topics=["travel"])  # pyright: ignore
    session = await memory.add_memories_to_working_memory("notes", [note], user_id="ada")
    assert [found.id for found in session.memories] == [note.id]
    # The other client's tests run in another namespace, because an id belongs to one owner.
    second = MemoryRecord(id=f"second of {memory.config.default_namespace}", text="Ada sings alto.")
    session = await memory.add_memories_to_working_memory("notes", [second], user_id="ada")
    assert {found.id for found in session.memories} == {note.id, second.id}
    assert (await memory.promote_working_memories_to_long_term("notes", [note.id])).status == "ok"
    stored = await memory.get_long_term_memory(note.id)
    assert (stored.text, stored.user_id, stored.namespace) == (note.text, "ada", memory.config.default_namespace)
    session = await memory.add_memories_to_working_memory("notes", [note], replace=True, user_id="ada")
    assert [found.id for found in session.memories] == [note.id]


async def test_flush_extracts_memories_from_messages(memory: MemoryAPIClient) -> None:
    await memory.append_messages("said", TURN, user_id="ada")
    flushed = await memory.flush_working_memory("said", user_id="ada", wait=True)
    assert flushed.status == "ok"
    assert flushed.operation_id
    assert flushed.operation_id.startswith("session-")
    found = await memory.search_long_term_memory("tide gauges", search_mode="keyword", session_id={"eq": "said"}, user_id={"eq": "ada"})
    assert any("tide gauges" in hit.text for hit in found.memories)


async def test_a_session_is_deleted_with_its_memories(memory: MemoryAPIClient) -> None:
    await memory.append_messages("gone", TURN, user_id="ada")
    await memory.flush_working_memory("gone", user_id="ada", wait=10)
    gone = await memory.delete_working_memory("gone", user_id="ada", memories=True, wait=True)
    assert gone.status == "ok"
    assert gone.operation_id

    async def nothing_left() -> bool:
        return not (await memory.search_long_term_memory("", session_id={"eq": "gone"})).memories

    await wait_until(nothing_left, "the session's memories to go")


async def test_delete_user_deletes_data_in_every_namespace(memory: MemoryAPIClient) -> None:
    user = f"bob-{memory.config.default_namespace}"
    await memory.append_messages("his", TURN, user_id=user)
    await memory.create_long_term_memory([ClientMemoryRecord(text="Bob keeps bees.", user_id=user, namespace="other")])
    await memory.append_messages("hers", TURN, user_id="ada")
    gone = await memory.delete_user(user, wait=True)
    assert gone.status == "ok"
    assert gone.operation_id

    async def nothing_left() -> bool:
        sessions = (await memory.list_sessions(user_id=user)).total
        return not sessions and not (await memory.search_long_term_memory("", namespace={"eq": "other"}, user_id={"eq": user})).memories

    await wait_until(nothing_left, "the user's data to go")
    assert (await memory.get_working_memory("hers", user_id="ada")).messages


async def test_validation_error_names_the_field(memory: MemoryAPIClient) -> None:
    with pytest.raises(MemoryServerError, match="limit") as caught:
        await memory.list_sessions(limit=0)
    assert caught.value.status_code == 422
    assert caught.value.problems[0]["loc"] == ["query", "limit"]


async def test_change_messages_retries_after_concurrent_writes(server: str) -> None:
    calls: list[list[str]] = []

    def change(messages: list[MemoryMessage]) -> list[MemoryMessage]:
        calls.append([message.content for message in messages])
        return messages[1:]

    async with MemoryClient(MemoryClientConfig(base_url=server, default_namespace=new_id())) as client:
        assert await client.sessions.change_messages("changed", change) == []
        with pytest.raises(MemoryNotFoundError):
            await client.sessions.get("changed")
        await client.sessions.append("changed", [{"role": "user", "content": str(number)} for number in range(6)])
        done = await asyncio.gather(*(client.sessions.change_messages("changed", change) for _ in range(3)))
        assert sorted(messages[0].content for messages in done) == ["0", "1", "2"]
        assert [message.content for message in (await client.sessions.get("changed")).messages] == ["3", "4", "5"]
    assert len(calls) >= 4
