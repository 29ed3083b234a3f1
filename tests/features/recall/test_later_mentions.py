"""Test that a prompt includes later statements about a thing mentioned in a shown memory.

Their wording does not matter.
"""

from __future__ import annotations

from typing import Any

import pytest

from agent_memory.features.recall.service import RecallService
from agent_memory_client.models import MemoryPromptRequest
from tests.support.commands import commands_of
from tests.support.rig import SCOPE, Rig

LATER = "Candle Street was damp, I am back on Ropewalk 3."


async def shown(rig: Rig, query: str, user: str = "u", **search: Any) -> list[str]:
    body = {"query": query, "long_term_search": {"user_id": {"eq": user}, **search}}
    memories = (await rig.rt[RecallService].prompt(SCOPE, MemoryPromptRequest.model_validate(body))).long_term_memories or []
    return [memory.text for memory in memories]


@pytest.fixture
async def flats(rig: Rig) -> Rig:
    await rig.append("a", "I live on Candle Street 8 now.", user_id="u")
    # Many texts are as similar to the query as the newest flat's.
    await rig.append("b", *[f"My neighbour number {i} keeps {i} cats on a boat." for i in range(80)], user_id="u")
    await rig.append("c", "It rained.", LATER, user_id="u")
    await rig.append("d", "Candle Street 20 has a baker.", "I never saw a candle on a street.", user_id="u")
    await rig.append("e", "Candle Street is where I sing.", user_id="other")
    await rig.append("f", "Candle Street is nice!", role="assistant", user_id="u")
    await rig.work()
    return rig


async def test_later_mention_of_a_shown_thing_is_included_among_many_others(flats: Rig) -> None:
    texts = await shown(flats, "Where do I live?", limit=10)
    assert LATER in texts
    assert not {"Candle Street is where I sing.", "Candle Street is nice!", "Candle Street 20 has a baker."} & set(texts)


async def test_later_mentions_respect_the_search_filters(flats: Rig) -> None:
    assert LATER not in await shown(flats, "Where do I live?", limit=10, session_id={"eq": "a"})


async def test_earlier_mention_is_not_added(flats: Rig) -> None:
    await flats.append("g", "I rent a garage beside Candle Street 8.", user_id="u")
    await flats.work()
    assert await shown(flats, "Where is the garage that I rent?", limit=1) == ["I rent a garage beside Candle Street 8."]


async def test_later_mentions_cost_a_round_trip_only_if_the_page_names_things(flats: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    queries = ("Did it rain?", "Where do I live now?")
    for query in queries:
        await shown(flats, query, limit=1)
    sent = commands_of(flats, monkeypatch)
    await shown(flats, queries[0], limit=1)
    assert len(sent) == 3, "how common the words are, the lists, the memories"
    sent.clear()
    await shown(flats, queries[1], limit=1)
    assert len(sent) == 4, "and what was said of Candle Street 8"


@pytest.fixture
async def cats(rig: Rig) -> Rig:
    await rig.append("a", "Nori is my sister in Lima.", "I have two cats, Miso and Nori.", user_id="u")
    await rig.append("b", "Nori died on Tuesday. I'm heartbroken.", "The bus was late on Tuesday.", user_id="u")
    await rig.append("c", "Nori sounds like seaweed.", role="assistant", user_id="u")
    await rig.append("d", "Miso was soup.", user_id="other")
    await rig.work()
    return rig


async def test_names_in_shown_memories_add_other_mentions_if_the_page_has_room(cats: Rig) -> None:
    texts = await shown(cats, "What are my cats called?")
    assert "Nori died on Tuesday. I'm heartbroken." in texts
    assert "The bus was late on Tuesday." not in texts
    assert "Miso was soup." not in texts


async def test_name_used_by_the_assistant_adds_no_mentions(rig: Rig) -> None:
    await rig.append("a", "Your cats are lovely, Mara!", role="assistant", user_id="u")
    await rig.append("b", "Shall we go on, Mara?", "Mara, the weather is fine.", role="assistant", user_id="u")
    await rig.work()
    assert await shown(rig, "What are my cats called?") == ["Your cats are lovely, Mara!"]


async def test_full_page_adds_no_mentions_of_names(cats: Rig) -> None:
    assert await shown(cats, "What are my cats called?", limit=1) == ["I have two cats, Miso and Nori."]


async def test_mentions_of_names_cost_no_round_trip(cats: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    await shown(cats, "What are my cats called?")
    sent = commands_of(cats, monkeypatch)
    await shown(cats, "What are my cats called?")
    assert len(sent) == 3, "how common the words are, the lists, the memories"


async def test_correction_beyond_the_limit_follows_the_corrected_statement_of_a_full_page(rig: Rig) -> None:
    await rig.append("a", "We are moving to Bristol on 14 November, I signed the lease.", "Bristol has a bridge.", user_id="u")
    await rig.append("b", "They pushed it back, we are moving on 21 November now.", "It rained.", user_id="u")
    await rig.work()
    texts = await shown(rig, "When do we move to Bristol?", limit=2)
    assert [text.partition(",")[0] for text in texts] == [
        "We are moving to Bristol on 14 November",
        "Bristol has a bridge.",
        "They pushed it back",
    ]
