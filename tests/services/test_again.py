"""A question that comes again is answered in one round trip, and as what is stored says now."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from agent_memory.services.again import Again, Asked
from agent_memory_client.models import EditMemoryRecordRequest, MemoryPromptRequest, SearchRequest
from tests.support.commands import commands_of
from tests.support.rig import SCOPE, Rig, record

QUERY = "Where does the ferry go?"


@pytest.fixture
async def ferries(rig: Rig) -> Rig:
    await rig.remember(*(record(f"The ferry number {number} goes to Bergen", f"m{number}", user_id="ann") for number in range(4)))
    return rig


async def search(rig: Rig, **more: Any) -> list[str]:
    found = await rig.rt.search.search(SCOPE, SearchRequest.model_validate({"text": QUERY, **more}))
    return sorted(one.text for one in found.memories)


async def prompt(rig: Rig) -> list[str]:
    body = {"query": QUERY, "long_term_search": {"user_id": {"eq": "ann"}}}
    answer = await rig.rt.recall.prompt(SCOPE, MemoryPromptRequest.model_validate(body))
    return sorted(one.text for one in answer.long_term_memories or [])


@pytest.mark.parametrize("ask", [search, prompt])
async def test_a_question_that_comes_again_takes_one_round_trip(ferries: Rig, monkeypatch: pytest.MonkeyPatch, ask: Any) -> None:
    first = await ask(ferries)
    assert len(first) == 4
    await ferries.rt.usage.flush()  # readings are counted after the answer
    sent = commands_of(ferries, monkeypatch)
    assert await ask(ferries) == first
    assert len(sent) == 1, [one[:200] for one in sent]


@pytest.mark.parametrize("ask", [search, prompt])
async def test_what_changed_meanwhile_is_in_the_answer(ferries: Rig, ask: Any) -> None:
    for _ in range(2):
        assert len(await ask(ferries)) == 4
    await ferries.rt.longterm.delete(SCOPE, ["m0"])
    assert await ask(ferries) == [f"The ferry number {number} goes to Bergen" for number in (1, 2, 3)]
    await ferries.rt.longterm.patch(SCOPE, "m1", EditMemoryRecordRequest(text="The ferry number 1 goes to Stavanger"))
    assert "The ferry number 1 goes to Stavanger" in await ask(ferries)
    await ferries.remember(record("The ferry number 9 goes to Bergen", "m9", user_id="ann"))
    assert "The ferry number 9 goes to Bergen" in await ask(ferries)
    await ferries.rt.longterm.delete(SCOPE, [f"m{number}" for number in range(10)])
    assert await ask(ferries) == []


async def test_another_page_or_filter_is_another_question(ferries: Rig) -> None:
    assert len(await search(ferries, limit=3)) == 3
    assert len(await search(ferries, limit=3, offset=3)) == 1
    assert len(await search(ferries, limit=3)) == 3
    assert await search(ferries, user_id={"eq": "ben"}) == []


async def test_a_caller_of_smaller_reach_is_shown_its_own(ferries: Rig) -> None:
    body = SearchRequest(text=QUERY)
    for _ in range(2):
        assert len((await ferries.rt.search.search(SCOPE, body)).memories) == 4
        assert (await ferries.rt.search.search(replace(SCOPE, users=frozenset({"ben"})), body)).memories == []


def test_the_oldest_questions_are_forgotten() -> None:
    again = Again(most=2)
    asked = [Asked("w", text, 0, 10) for text in "abc"]
    for one in asked[:2]:
        again.keep(one, [one.text])
    assert again.names(asked[0]) == ["a"]
    again.keep(asked[2], ["c"])
    assert [again.names(one) for one in asked] == [["a"], (), ["c"]]
    again.keep(asked[0], ["x"] * 41)
    assert again.names(asked[0]) == ["a"], "so many are not read on suspicion"
