"""Test that a search finds a sentence anywhere in a long memory by its passage."""

from __future__ import annotations

from typing import Any

import pytest

from agent_memory.features.memories.search.service import SearchService
from agent_memory.features.memories.service import MemoryService
from agent_memory_client.models import EditMemoryRecordRequest, MemoryRecordResultsResponse, SearchRequest
from tests.support.rig import SCOPE, Rig, record

TOPICS = ("tomatoes", "tax returns", "bicycles", "sonatas", "vaccines", "ferries", "compilers", "glaciers", "saffron", "volcanoes")
CODES = {topic: f"The reference for {topic} in the annex is {1000 + 7 * place}." for place, topic in enumerate(TOPICS)}


def report(topic: str, place: int) -> str:
    """Return a text of about 3,000 tokens, with one unique sentence at `place`."""
    filler = [
        f"Paragraph {number} of the {topic} report sums up what the committee heard about budgets and dates." for number in range(120)
    ]
    return "\n".join([*filler[:place], CODES[topic], *filler[place:]])


@pytest.fixture
async def reports(rig: Rig) -> Rig:
    await rig.remember(*(record(report(topic, 11 * number), topic) for number, topic in enumerate(TOPICS)))
    return rig


async def search(rig: Rig, text: str, **wanted: Any) -> MemoryRecordResultsResponse:
    return await rig.rt[SearchService].search(SCOPE, SearchRequest.model_validate({"text": text, **wanted}))


async def passage_keys(rig: Rig) -> int:
    return len([key async for key in rig.rt.client.scan_iter(match=f"{rig.keys.root}p:*")])


@pytest.mark.parametrize("mode", [None, "hybrid", "semantic"])
async def test_sentence_anywhere_in_a_long_text_is_found_first(reports: Rig, mode: str | None) -> None:
    wanted = {} if mode is None else {"search_mode": mode}
    first = [(await search(reports, sentence, **wanted)).memories[0].id for sentence in CODES.values()]
    assert first == list(TOPICS)


async def test_search_returns_the_matching_passage(reports: Rig) -> None:
    for topic, sentence in CODES.items():
        found = (await search(reports, sentence)).memories[0]
        assert found.passage is not None, topic
        assert sentence in found.passage.text
        assert found.passage.text == found.text[found.passage.start : found.passage.end]
        assert len(found.passage.text.encode()) <= 800
    await reports.remember(record("The ferry to Ulvik leaves at noon.", "short"))
    found = (await search(reports, "When does the ferry to Ulvik leave?")).memories[0]
    assert (found.id, found.passage) == ("short", None)


async def test_long_memory_is_returned_once(reports: Rig) -> None:
    found = await search(reports, "What did the committee hear about budgets?", limit=50)
    assert (found.total, len({memory.id for memory in found.memories}), len(found.memories)) == (10, 10, 10)


async def test_passages_are_updated_by_edits_and_deletions(reports: Rig) -> None:
    rig, service = reports, reports.rt[MemoryService]
    before = await passage_keys(rig)
    changed = "\n".join(f"Line {number} tells what happened to the harbors of the north." for number in range(60))
    await service.patch(SCOPE, "tomatoes", EditMemoryRecordRequest(text="Short now."))
    await rig.index()
    assert await passage_keys(rig) < before
    await service.patch(SCOPE, "tomatoes", EditMemoryRecordRequest(text=changed))
    await rig.index()
    assert (await search(rig, "harbors of the north")).memories[0].id == "tomatoes"
    await service.delete(SCOPE, list(TOPICS))
    assert await passage_keys(rig) == 0


async def test_passages_respect_filters(reports: Rig) -> None:
    await reports.rt[MemoryService].patch(SCOPE, "sonatas", EditMemoryRecordRequest(topics=["music"]))
    found = await search(reports, CODES["glaciers"], topics={"any": ["music"]}, limit=5)
    assert [memory.id for memory in found.memories] == ["sonatas"]
