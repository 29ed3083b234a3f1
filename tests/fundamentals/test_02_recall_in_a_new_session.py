"""Chapter 2: the next day. A user's messages from one session can be found in another."""

from __future__ import annotations

from agent_memory_client import MemoryAPIClient
from tests.support.waiting import settled


async def test_facts_of_an_earlier_session_are_recalled(memory: MemoryAPIClient) -> None:
    told = [
        {"id": "m1", "role": "user", "content": "Hi there!"},
        {"id": "m2", "role": "user", "content": "I am allergic to peanuts, so please never suggest peanut sauce."},
        {"id": "m3", "role": "user", "content": "My sister Joan visits me in Lisbon every August."},
    ]
    await memory.append_messages("monday", told, user_id="ada")
    await settled(memory)  # the worker promotes messages in the background, usually within a second

    prompt = await memory.memory_prompt("What should I not eat?", session_id="tuesday", user_id="ada", long_term_search={"limit": 1})

    [recalled] = prompt.long_term_memories or []
    assert recalled.text == told[1]["content"]
    assert recalled.extracted_from == ["m2"], "a memory knows the message it came from"
    assert recalled.session_id == "monday"
    assert recalled.text in prompt.to_openai()[0]["content"]


async def test_greetings_are_not_remembered(memory: MemoryAPIClient) -> None:
    said = ["Hello!", "Thanks, that is great!", "I work as a marine biologist.", "Bye!"]
    await memory.append_messages("chat", [{"role": "user", "content": text} for text in said], user_id="ben")
    await settled(memory)

    kept = await memory.search_long_term_memory("", user_id={"eq": "ben"})

    assert [record.text for record in kept.memories] == ["I work as a marine biologist."]


async def test_prompt_does_not_repeat_facts_shown_by_its_session(memory: MemoryAPIClient) -> None:
    await memory.append_messages("chat", [{"role": "user", "content": "My cat is called Pixel."}], user_id="cleo")
    await settled(memory)

    same = await memory.memory_prompt("What is my cat called?", session_id="chat", user_id="cleo", long_term_search=True)
    other = await memory.memory_prompt("What is my cat called?", session_id="later", user_id="cleo", long_term_search=True)

    assert "".join(message["content"] for message in same.to_openai()).count("Pixel") == 1
    assert [record.text for record in other.long_term_memories or []] == ["My cat is called Pixel."]


async def test_deleting_a_session_keeps_its_extracted_memories(memory: MemoryAPIClient) -> None:
    await memory.append_messages("chat", [{"role": "user", "content": "I play the cello in an orchestra."}], user_id="dora")
    await settled(memory)

    await memory.delete_working_memory("chat", user_id="dora")

    prompt = await memory.memory_prompt("Which instrument do I play?", session_id="new", user_id="dora", long_term_search=True)
    assert [record.text for record in prompt.long_term_memories or []] == ["I play the cello in an orchestra."]
