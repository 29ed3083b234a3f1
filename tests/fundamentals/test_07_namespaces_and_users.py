"""Chapter 7: separating users. Each session and memory has a namespace and a user."""

from __future__ import annotations

import pytest

from agent_memory_client import MemoryAPIClient, MemoryMessage, MemoryNotFoundError, WorkingMemory
from tests.support.waiting import settled

# Ids that would confuse a server that builds keys or queries from text.
HOSTILE = ["a:b", "a", "a*", "a b", "A", "{a}", "a|b", "@u:{x}", "äöü", "日本", "a\\", "-a"]


async def tell(memory: MemoryAPIClient, user: str | None, text: str, namespace: str | None = None) -> None:
    await memory.append_messages("chat", [{"role": "user", "content": text}], user_id=user, namespace=namespace)


async def test_same_session_id_of_two_users_gives_two_sessions(memory: MemoryAPIClient) -> None:
    await tell(memory, "ada", "Ada's secret is a blue door.")
    await tell(memory, "ben", "Ben's secret is a red door.")

    ada = await memory.get_working_memory("chat", user_id="ada")

    assert [message.content for message in ada.messages] == ["Ada's secret is a blue door."]
    with pytest.raises(MemoryNotFoundError):
        await memory.get_working_memory("chat", user_id="cleo")
    with pytest.raises(MemoryNotFoundError):
        await memory.get_working_memory("chat")  # both sessions match: the server does not guess


async def test_one_users_memories_are_never_recalled_for_another(memory: MemoryAPIClient) -> None:
    for user in HOSTILE:
        await tell(memory, user, f"My secret door has the number {HOSTILE.index(user)}.")
    await settled(memory)

    for user in HOSTILE:
        prompt = await memory.memory_prompt("Which number has my secret door?", session_id="new", user_id=user, long_term_search=True)
        assert [record.text for record in prompt.long_term_memories or []] == [f"My secret door has the number {HOSTILE.index(user)}."]


async def test_namespaces_separate_applications(memory: MemoryAPIClient) -> None:
    base = memory.config.default_namespace
    for number, name in enumerate(HOSTILE):
        await tell(memory, "ada", f"The code is {number}.", namespace=f"{base}{name}")
    await settled(memory)

    for number, name in enumerate(HOSTILE):
        space = f"{base}{name}"
        session = await memory.get_working_memory("chat", user_id="ada", namespace=space)
        assert [message.content for message in session.messages] == [f"The code is {number}."]
        found = await memory.search_long_term_memory("code", namespace={"eq": space})
        assert [record.text for record in found.memories] == [f"The code is {number}."]


async def test_sessions_are_listed_by_user_and_namespace(memory: MemoryAPIClient) -> None:
    for name, user in (("one", "ada"), ("two", "ada"), ("three", "ben")):
        await memory.put_working_memory(
            name, WorkingMemory(session_id=name, user_id=user, messages=[MemoryMessage(role="user", content="hello")])
        )

    assert (await memory.list_sessions(user_id="ada")).sessions == ["one", "two"]
    everything = await memory.list_sessions(limit=2)
    assert everything.total == 3
    assert len(everything.sessions) == 2

    await memory.delete_working_memory("one", user_id="ada")
    assert (await memory.list_sessions(user_id="ada")).sessions == ["two"]
