"""Chapter 4: long-term memory. Programs can store facts and search by meaning, keywords or both."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from agent_memory_client import ClientMemoryRecord, MemoryAPIClient, MemoryNotFoundError
from agent_memory_client.filters import EventDate, MemoryType, Topics, UserId
from tests.support.waiting import settled

FACTS = [
    ClientMemoryRecord(
        text="Ada moved to Lisbon", user_id="ada", memory_type="episodic", topics=["home"], event_date="2024-05-01T00:00:00Z"
    ),
    ClientMemoryRecord(text="Ada's favourite dish is mushroom risotto", user_id="ada", memory_type="semantic", topics=["food", "taste"]),
    ClientMemoryRecord(text="Ada's flight LX-1812 was cancelled", user_id="ada", memory_type="episodic", event_date="2025-11-20T00:00:00Z"),
    ClientMemoryRecord(text="Ben collects vintage synthesizers", user_id="ben", memory_type="semantic", topics=["music"]),
]


@pytest.fixture
async def facts(memory: MemoryAPIClient) -> list[ClientMemoryRecord]:
    """Store and index the facts above under new ids."""
    fresh = [ClientMemoryRecord(**record.model_dump(exclude={"id"})) for record in FACTS]
    await memory.create_long_term_memory(fresh)
    await settled(memory)
    return fresh


async def test_stored_memory_can_be_read_and_found_by_words_at_once(memory: MemoryAPIClient) -> None:
    fact = ClientMemoryRecord(text="Ada speaks Portuguese", user_id="ada")

    await memory.create_long_term_memory([fact])

    assert (await memory.get_long_term_memory(fact.id)).text == "Ada speaks Portuguese"
    found = await memory.search_long_term_memory("Portuguese", search_mode="keyword")
    assert [record.id for record in found.memories] == [fact.id], "words find it at once, meaning when a worker has embedded it"


async def test_semantic_search_finds_memory_without_common_words(memory: MemoryAPIClient, facts: list[ClientMemoryRecord]) -> None:
    found = await memory.search_long_term_memory("what does she like to eat?", search_mode="semantic", limit=1)

    assert found.memories[0].id == facts[1].id
    assert 0 < found.memories[0].dist < 1


async def test_keyword_search_finds_exact_words(memory: MemoryAPIClient, facts: list[ClientMemoryRecord]) -> None:
    found = await memory.search_long_term_memory("LX-1812", search_mode="keyword")

    assert [record.id for record in found.memories] == [facts[2].id]


async def test_hybrid_search_combines_words_and_meaning(memory: MemoryAPIClient, facts: list[ClientMemoryRecord]) -> None:
    found = await memory.search_long_term_memory("Where did Ada go to live?", search_mode="hybrid", limit=2)

    assert facts[0].id in [record.id for record in found.memories]
    assert found.memories[0].score_type == "hybrid"


async def test_filters_limit_search_results(memory: MemoryAPIClient, facts: list[ClientMemoryRecord]) -> None:
    async def ids(**filters: Any) -> set[str]:
        return {record.id for record in (await memory.search_long_term_memory("", **filters)).memories}

    lisbon, risotto, flight, synthesizers = (fact.id for fact in facts)
    assert await ids() == {lisbon, risotto, flight, synthesizers}, "no text: everything"
    assert await ids(user_id=UserId(eq="ben")) == {synthesizers}
    assert await ids(user_id={"ne": "ben"}) == {lisbon, risotto, flight}
    assert await ids(memory_type=MemoryType(eq="episodic")) == {lisbon, flight}
    assert await ids(topics=Topics(any=["food", "music"])) == {risotto, synthesizers}
    assert await ids(topics=Topics(all=["food", "taste"])) == {risotto}
    assert await ids(event_date=EventDate(gte=datetime(2025, 1, 1, tzinfo=UTC))) == {flight}
    assert await ids(event_date={"between": ["2024-01-01T00:00:00Z", "2024-12-31T00:00:00Z"]}) == {lisbon}


async def test_search_results_can_be_paged(memory: MemoryAPIClient, facts: list[ClientMemoryRecord]) -> None:
    first = await memory.search_long_term_memory("Ada", limit=2)
    assert first.next_offset == 2

    everything = [record.id async for record in memory.search_all_long_term_memories("Ada", batch_size=2)]
    assert len(everything) == len(set(everything))
    assert everything[:2] == [record.id for record in first.memories]


async def test_edited_memory_is_found_by_its_new_text_only(memory: MemoryAPIClient, facts: list[ClientMemoryRecord]) -> None:
    await memory.edit_long_term_memory(facts[0].id, {"text": "Ada moved to Porto", "topics": ["home", "north"]})
    await settled(memory)

    assert (await memory.get_long_term_memory(facts[0].id)).topics == ["home", "north"]
    found = await memory.search_long_term_memory("Porto", search_mode="keyword")
    assert [record.text for record in found.memories] == ["Ada moved to Porto"]
    assert not (await memory.search_long_term_memory("Lisbon", search_mode="keyword")).memories


async def test_deleted_memory_is_no_longer_found(memory: MemoryAPIClient, facts: list[ClientMemoryRecord]) -> None:
    done = await memory.delete_long_term_memories([facts[0].id, "no-such-memory"])

    assert done.status == "ok, deleted 1 memories"
    with pytest.raises(MemoryNotFoundError):
        await memory.get_long_term_memory(facts[0].id)
    assert facts[0].id not in {record.id for record in (await memory.search_long_term_memory("Lisbon")).memories}
