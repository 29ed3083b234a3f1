"""Chapter 5: the memory prompt. One call builds the prompt for the next model call."""

from __future__ import annotations

import pytest

from agent_memory_client import ClientMemoryRecord, MemoryAPIClient, MemoryMessage, MemoryServerError, WorkingMemory
from tests.support.waiting import settled

SESSION = WorkingMemory(
    session_id="support",
    user_id="ada",
    context="Ada asked about her invoice of March.",
    messages=[
        MemoryMessage(role="user", content="The invoice is still wrong."),
        MemoryMessage(role="assistant", content="I will correct it."),
    ],
)


async def test_prompt_parts_have_a_fixed_order(memory: MemoryAPIClient) -> None:
    await memory.create_long_term_memory([ClientMemoryRecord(id="plan", text="Ada is on the annual plan", user_id="ada")])
    await memory.put_working_memory("support", SESSION)
    await settled(memory)

    prompt = await memory.memory_prompt("Which plan am I on?", session_id="support", user_id="ada", long_term_search={"limit": 3})

    summary, *turns, memories, question = prompt.to_openai()
    assert summary == {"role": "system", "content": "## A summary of the conversation so far:\nAda asked about her invoice of March."}
    assert turns == [
        {"role": "user", "content": "The invoice is still wrong."},
        {"role": "assistant", "content": "I will correct it."},
    ]
    assert memories["role"] == "system"
    assert memories["content"].startswith("## Long term memories related to the user's query\n - ")
    assert "Ada is on the annual plan (ID: plan)" in memories["content"]
    assert question == {"role": "user", "content": "Which plan am I on?"}


async def test_prompt_accepts_any_model_name(memory: MemoryAPIClient) -> None:
    await memory.put_working_memory("support", SESSION)

    prompt = await memory.memory_prompt("And now?", session_id="support", user_id="ada", model_name="my-litellm-model")

    assert len(prompt.messages) == 4


async def test_small_window_omits_the_oldest_messages(memory: MemoryAPIClient) -> None:
    await memory.append_messages("long", [{"role": "user", "content": f"{'word ' * 20}{number}"} for number in range(20)])

    prompt = await memory.memory_prompt("And now?", session_id="long", context_window_max=200)

    shown = [message["content"] for message in prompt.to_openai()]
    assert 1 < len(shown) < 12
    assert shown[-2].endswith("19")


async def test_prompt_without_a_session_contains_only_memories(memory: MemoryAPIClient) -> None:
    await memory.create_long_term_memory([ClientMemoryRecord(text="The office closes at six", user_id="ada")])
    await settled(memory)

    prompt = await memory.memory_prompt("When does the office close?", long_term_search={"user_id": {"eq": "ada"}, "limit": 1})

    assert [record.text for record in prompt.long_term_memories or []] == ["The office closes at six"]


async def test_prompt_states_that_no_memories_were_found(memory: MemoryAPIClient) -> None:
    prompt = await memory.memory_prompt("Who am I?", session_id="first", user_id="nobody", long_term_search=True)

    assert prompt.long_term_memories is None
    assert "No relevant long-term memories found." in prompt.to_openai()[0]["content"]


async def test_prompt_without_session_and_search_is_refused(memory: MemoryAPIClient) -> None:
    with pytest.raises(MemoryServerError) as refused:
        await memory.memory_prompt("Who am I?")
    assert refused.value.status_code == 400
