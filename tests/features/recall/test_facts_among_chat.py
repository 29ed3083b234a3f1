"""Test that a prompt shows both known facts and chat about a topic, however much chat there is."""

from __future__ import annotations

import pytest

from agent_memory.features.memories.search.service import SearchService
from agent_memory.features.recall.service import RecallService
from agent_memory_client.models import MemoryPromptRequest, SearchRequest
from tests.support.commands import commands_of
from tests.support.rig import SCOPE, Rig, record

QUESTION = "What is my job at the harbour?"


async def shown(rig: Rig, limit: int = 10) -> list[str]:
    body = {"query": QUESTION, "long_term_search": {"user_id": {"eq": "u"}, "limit": limit}}
    prompt = await rig.rt[RecallService].prompt(SCOPE, MemoryPromptRequest.model_validate(body))
    return [memory.text for memory in prompt.long_term_memories or []]


async def talk(rig: Rig) -> None:
    lines = [f"My job at the harbour was hard on day {i}, what a job at the harbour" for i in range(120)]
    await rig.append("s", *lines, user_id="u")
    await rig.work()


async def test_chat_does_not_crowd_out_a_fact(rig: Rig) -> None:
    await talk(rig)
    await rig.remember(record("Works as a pilot of ships", user_id="u"), record("Plays the bassoon", user_id="u"))
    texts = await shown(rig)
    assert "Works as a pilot of ships" in texts
    assert len(texts) == 10
    assert sum("harbour was hard" in text for text in texts) >= 8


async def test_facts_do_not_crowd_out_chat(rig: Rig) -> None:
    await rig.append("s", "I told them that the job is a hard one", user_id="u")
    await rig.work()
    await rig.remember(*[record(f"Job number {i} at the harbour is done", user_id="u") for i in range(14)])
    texts = await shown(rig)
    assert "I told them that the job is a hard one" in texts
    assert len(texts) == 10


async def test_selecting_facts_among_chat_takes_no_extra_round_trip(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    await rig.remember(record("Works as a pilot of ships", user_id="u"))
    await talk(rig)
    await shown(rig)
    sent = commands_of(rig, monkeypatch)
    await shown(rig)
    assert len(sent) == 3, "how common the words are, the lists, the memories"


async def test_fact_replaces_its_message_if_only_the_message_matches(rig: Rig) -> None:
    await rig.append("s", "We have moved: the parcel comes to Juniper Court.", user_id="u")
    await rig.work()
    [message] = (await rig.rt[SearchService].search(SCOPE, SearchRequest(text="parcel"))).memories
    resting = {"session_id": "s", "extracted_from": message.extracted_from, "user_id": "u"}
    await rig.remember(record("Lives at number nine", **resting), record("Plays the bassoon", user_id="u"))
    body = {"query": "Where does my parcel go?", "long_term_search": {"user_id": {"eq": "u"}, "limit": 10}}
    prompt = await rig.rt[RecallService].prompt(SCOPE, MemoryPromptRequest.model_validate(body))
    assert [memory.text for memory in prompt.long_term_memories or []] == ["Lives at number nine"]


@pytest.mark.parametrize("promoted", [False, True], ids=["just said", "remembered"])
async def test_question_that_a_program_has_just_stored_is_not_among_its_memories(rig: Rig, promoted: bool) -> None:
    question = "I rowed 5k today. What is my job at the harbour?"
    await rig.append("before", "I have a job at the harbour as a pilot", user_id="u")
    await rig.work()
    await rig.append("now", question, user_id="u")
    if promoted:
        await rig.work()
    body = {"query": question, "long_term_search": {"user_id": {"eq": "u"}}}
    prompt = await rig.rt[RecallService].prompt(SCOPE, MemoryPromptRequest.model_validate(body))
    assert [memory.text for memory in prompt.long_term_memories or []] == ["I have a job at the harbour as a pilot"]
