"""Test prompts in OpenAI format, in Anthropic format, and as plain text."""

from __future__ import annotations

from typing import Any

import pytest

from agent_memory.features.recall.formats import format_prompt
from agent_memory.features.recall.sections.session import turn_message
from agent_memory.features.recall.service import RecallService
from agent_memory.features.sessions.codec import PromptTurn
from agent_memory.features.sessions.service import SessionService
from agent_memory.foundation.llm.tokens import TokenCounter
from agent_memory.foundation.text.prompt_marks import FACTS_HEAD, STATEMENTS_HEAD, SUMMARY_HEAD, own_words
from agent_memory_client.models import MemoryPromptRequest, MemoryPromptResponse, UpdateWorkingMemory
from tests.support.rig import SCOPE, Rig, record

CALL = {"id": "c1", "type": "function", "function": {"name": "tide", "arguments": '{"day": "Friday"}'}}
SESSION = [
    {"role": "system", "content": "Answer in one sentence."},
    {"role": "user", "content": "When does the ferry leave?"},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "content": "at nine", "tool_call_id": "c1"},
    {"role": "assistant", "content": "At nine."},
]


@pytest.fixture
async def harbour(rig: Rig) -> Rig:
    await rig.remember(record("The ferry to Moss is cheaper on Fridays", memory_id="fact", user_id="ann"))
    await rig.append("earlier", "I take the ferry to Moss with my bicycle", user_id="ann")
    await rig.work()
    body = {"messages": SESSION, "user_id": "ann", "context": "They plan a trip."}
    await rig.rt[SessionService].put(SCOPE, "now", UpdateWorkingMemory.model_validate(body))
    return rig


async def prompt(rig: Rig, query: str = "What does the ferry to Moss cost?", **more: Any) -> MemoryPromptResponse:
    body = {"query": query, "session": {"session_id": "now", "user_id": "ann"}, "long_term_search": True, **more}
    return await rig.rt[RecallService].prompt(SCOPE, MemoryPromptRequest.model_validate(body))


async def test_openai_format_has_one_system_message_and_the_session_unchanged(harbour: Rig) -> None:
    answer = (await prompt(harbour, format="openai")).model_dump(mode="json")
    first, *rest = answer["messages"]
    assert first["role"] == "system"
    parts = [first["content"].index(part) for part in ("Answer in one", SUMMARY_HEAD, FACTS_HEAD, STATEMENTS_HEAD)]
    assert parts == sorted(parts)
    assert [message["role"] for message in rest] == ["user", "assistant", "tool", "assistant", "user"]
    assert all(isinstance(message["content"], str) for message in rest)
    assert rest[1]["tool_calls"] == [CALL]
    assert rest[2]["tool_call_id"] == "c1"
    assert rest[-1] == {"role": "user", "content": "What does the ferry to Moss cost?"}
    assert (answer["format"], answer["relevant"]) == ("openai", True)
    assert "system" not in answer
    assert "text" not in answer


async def test_anthropic_format_has_a_separate_system_text_and_alternating_turns(harbour: Rig) -> None:
    answer = await prompt(harbour, format="anthropic")
    messages = answer.model_dump(mode="json")["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant", "user"]
    assert messages[1]["content"] == '[call of a tool] tide({"day": "Friday"})\n\n[answer of a tool] at nine\n\nAt nine.'
    assert FACTS_HEAD in (answer.system or "")
    assert "Answer in one sentence." in (answer.system or "")


async def test_text_format_is_one_string(harbour: Rig) -> None:
    answer = await prompt(harbour, format="text")
    text = answer.text or ""
    parts = [SUMMARY_HEAD, FACTS_HEAD, STATEMENTS_HEAD, "## The conversation\nuser: When", "tool", "## The user's message\nWhat does"]
    assert [text.index(part) for part in parts] == sorted(text.index(part) for part in parts)
    assert answer.messages == []
    assert text.endswith("What does the ferry to Moss cost?")


@pytest.mark.parametrize("wanted", ["openai", "anthropic", "text"])
async def test_prompt_without_relevant_memories_contains_only_the_query(rig: Rig, wanted: str) -> None:
    body = {"query": "quantum chromodynamics", "long_term_search": {"user_id": {"eq": "nobody"}}, "format": wanted}
    answer = await rig.rt[RecallService].prompt(SCOPE, MemoryPromptRequest.model_validate(body))
    shown = answer.model_dump(mode="json")
    assert shown["relevant"] is False
    assert shown["messages"] == ([] if wanted == "text" else [{"role": "user", "content": "quantum chromodynamics"}])
    assert shown.get("text") == ("quantum chromodynamics" if wanted == "text" else None)
    assert "system" not in shown


async def test_prompt_without_a_format_follows_the_contract(harbour: Rig) -> None:
    answer = (await prompt(harbour)).model_dump(mode="json")
    assert set(answer) == {"messages", "long_term_memories", "notices", "explanation"}
    assert all(isinstance(message["content"], dict) for message in answer["messages"])


async def test_include_ids_false_omits_ids_with_and_without_a_format(harbour: Rig) -> None:
    for wanted in ({}, {"format": "text"}):
        assert "(ID: fact)" in str((await prompt(harbour, **wanted)).model_dump())
        assert "(ID: " not in str((await prompt(harbour, include_ids=False, **wanted)).model_dump())


@pytest.mark.parametrize("wanted", ["openai", "anthropic", "text"])
@pytest.mark.parametrize("most", [200, 400, 1200])
async def test_formatted_prompt_stays_within_its_token_budget(rig: Rig, counter: TokenCounter, wanted: str, most: int) -> None:
    await rig.remember(*[record(f"Ferry note {i}: quay {i} has a bench and a lamp", user_id="ann") for i in range(40)])
    messages = [{"role": "user", "content": f"Message {i} about the ferry and the weather"} for i in range(60)]
    body = {"messages": messages, "user_id": "ann", "context": "They plan a trip by ferry. " * 80}
    await rig.rt[SessionService].put(SCOPE, "now", UpdateWorkingMemory.model_validate(body))
    answer = await prompt(rig, "Which ferry?", format=wanted, max_tokens=most)
    texts = [answer.system or "", answer.text or "", *(str(message.content) for message in answer.messages)]
    assert sum(map(counter.count, texts)) <= most
    assert "Message 59" in "".join(texts), "the newest message is always there"
    assert FACTS_HEAD in "".join(texts)


@pytest.fixture
async def counter() -> TokenCounter:
    return await TokenCounter.open()


async def test_returned_formatted_prompt_is_not_taken_for_user_text(harbour: Rig) -> None:
    system = (await prompt(harbour, format="anthropic", include_ids=False)).system or ""
    assert own_words(system, "system") == "Answer in one sentence."
    assert own_words(f"{system}\n\nI sold the boat", "user").endswith("I sold the boat")


async def test_system_text_is_stable_while_its_content_is_unchanged(harbour: Rig) -> None:
    texts = {(await prompt(harbour, format="anthropic")).system for _ in range(3)}
    assert len(texts) == 1


def turns(*roles: str) -> list[dict[str, Any]]:
    return [turn_message(PromptTurn(1, str(i), role, f"{role} {i}")) for i, role in enumerate(roles)]


@pytest.mark.parametrize(
    ("roles", "shown"),
    [
        ((), ["user"]),
        (("assistant",), ["user", "assistant", "user"]),
        (("user", "user"), ["user"]),
        (("user", "assistant", "assistant", "tool", "Ben"), ["user", "assistant", "user"]),
        (("system", "developer", "user"), ["user"]),
    ],
    ids=str,
)
def test_anthropic_turns_alternate_for_any_sequence_of_roles(roles: tuple[str, ...], shown: list[str]) -> None:
    formatted = format_prompt("anthropic", [], turns(*roles), "And now?")
    assert [message["role"] for message in formatted.messages] == shown
    assert formatted.messages[-1]["content"].endswith("And now?")
    assert all(message["content"].strip() for message in formatted.messages)
