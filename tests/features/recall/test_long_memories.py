"""Test prompts that match megabytes of memories.

The server reads them off the event loop, and counts tokens only up to the budget.
"""

from __future__ import annotations

from agent_memory.features.recall.service import RecallService
from agent_memory.features.sessions.service import SessionService
from agent_memory_client.models import AppendMessagesRequest, MemoryPromptRequest
from tests.support.heartbeat import heartbeat
from tests.support.rig import SCOPE, Rig, record

# Seconds of CPU in one turn of the loop. All texts at once would take one to two.
_MOST = 0.5
_PARTS = ("from may to ", "in 2020 and ", "(((( ", "last ", "on the 1st of ", "my brother's ")
_CHARACTERS = 1_000_000


async def test_long_memories_do_not_block_the_event_loop(rig: Rig) -> None:
    for part in _PARTS:
        said = {"role": "user", "content": part * (_CHARACTERS // len(part))}
        await rig.rt[SessionService].append(SCOPE, "s", AppendMessagesRequest.model_validate({"user_id": "long", "messages": [said]}))
    async with heartbeat() as working:
        await rig.work()
    body = {"query": "on the 1st of my brother's from may to", "user_id": "long", "long_term_search": True}
    async with heartbeat() as recalling:
        prompt = await rig.rt[RecallService].prompt(SCOPE, MemoryPromptRequest.model_validate(body))
        assert prompt.messages
    longest = {"working": working.longest, "recalling": recalling.longest}
    assert max(longest.values()) < _MOST, longest


_COMMITTEE = "The committee met on the second floor and discussed the budget in great detail. "


async def test_prompt_shows_and_reports_the_matching_passage_of_a_long_memory(rig: Rig) -> None:
    said = {"role": "user", "content": _COMMITTEE * 160 + "My locker code at the gym is 7719. " + _COMMITTEE * 160}
    await rig.rt[SessionService].append(SCOPE, "s", AppendMessagesRequest.model_validate({"user_id": "ana", "messages": [said]}))
    await rig.work()
    query = "What is my locker code at the gym?"
    for more in ({}, {"max_tokens": 2000}, {"format": "openai"}, {"session": {"session_id": "other", "user_id": "ana"}}):
        body = {"query": query, "user_id": "ana", "long_term_search": True} | more
        prompt = await rig.rt[RecallService].prompt(SCOPE, MemoryPromptRequest.model_validate(body))
        (memory,) = prompt.long_term_memories or []
        text = str(prompt.messages)
        assert "My locker code at the gym is 7719." in text, more
        assert ("said: …" in text, f"… (ID: {memory.id})" in text) == (True, True), more
        assert len(text) < 4 * 2500, "no more than a passage of it"
        assert [memory.id in notice for notice in prompt.notices or ()] == [True]


async def test_memories_use_the_requested_token_budget(rig: Rig) -> None:
    said = {"role": "user", "content": _COMMITTEE * 300}
    await rig.rt[SessionService].append(SCOPE, "s", AppendMessagesRequest.model_validate({"user_id": "bo", "messages": [said]}))
    await rig.work()
    body = {"query": "Where does the committee meet?", "user_id": "bo", "long_term_search": True, "max_tokens": 64_000}
    prompt = await rig.rt[RecallService].prompt(SCOPE, MemoryPromptRequest.model_validate(body))
    assert _COMMITTEE * 299 in str(prompt.messages)
    assert prompt.notices is None


async def test_prompt_shows_passages_of_long_memories_that_do_not_fit(rig: Rig) -> None:
    codes = {f"gym{number}": f"My locker code at gym number {number} is {7700 + number}. " for number in range(8)}
    await rig.remember(*(record(_COMMITTEE * 40 + code + _COMMITTEE * 40, name) for name, code in codes.items()))
    body = {"query": "What are my locker codes at the gyms?", "long_term_search": True, "max_tokens": 4000}
    prompt = await rig.rt[RecallService].prompt(SCOPE, MemoryPromptRequest.model_validate(body))
    text = str(prompt.messages)
    assert [code.strip() in text for code in codes.values()] == [True] * 8
    body |= {"max_tokens": 300, "format": "text"}
    prompt = await rig.rt[RecallService].prompt(SCOPE, MemoryPromptRequest.model_validate(body))
    assert len(prompt.long_term_memories or ()) == 1
    assert prompt.text is not None
    assert "My locker code" in prompt.text
    assert len(prompt.text) < 4 * 300


async def test_memories_use_the_tokens_that_a_short_session_leaves(rig: Rig) -> None:
    await rig.append("chat", "Hello!", user_id="cy")
    await rig.remember(*(record(f"Stamp {number} in my album is blue. " * 12, user_id="cy") for number in range(20)))
    body = {"query": "Which stamps are in my album?", "session": {"session_id": "chat", "user_id": "cy"}, "long_term_search": True}
    prompt = await rig.rt[RecallService].prompt(SCOPE, MemoryPromptRequest.model_validate(body | {"max_tokens": 3000}))
    assert 5_500 < sum(len(memory.text) for memory in prompt.long_term_memories or ()) < 4 * 3000
