"""Test that the document frequencies of query words reflect the current memories."""

from __future__ import annotations

from typing import Any

import pytest

from agent_memory.features.memories.search.service import SearchService
from agent_memory.features.memories.service import MemoryService
from agent_memory_client.models import MemoryRecordResultsResponse, SearchRequest
from tests.support.commands import commands_of
from tests.support.rig import SCOPE, Rig, record

FILTERED = {"topics": {"eq": "music"}}


async def search(rig: Rig, text: str, **more: Any) -> MemoryRecordResultsResponse:
    return await rig.rt[SearchService].search(SCOPE, SearchRequest.model_validate({"text": text, "limit": 50, "explain": True, **more}))


@pytest.mark.parametrize("more", [{}, FILTERED, {"distance_threshold": 1.5}], ids=["all", "filtered", "near"])
async def test_word_rarity_reflects_many_new_memories(rig: Rig, more: dict[str, Any]) -> None:
    await rig.remember(record("Ada has a violin", topics=["music"]))
    before = await search(rig, "Ada and the violin number 7", **more)
    await rig.remember(*(record(f"Ada likes number {number}", topics=["music"]) for number in range(45)))
    after = await search(rig, "Ada and the violin number 7", **more)
    assert after.total == 46
    if "distance_threshold" not in more:
        assert _word_score(after, "violin") > 2 * _word_score(before, "violin"), "one of 46 memories has a rare word"


async def test_search_totals_reflect_many_deleted_memories(rig: Rig) -> None:
    await rig.remember(*(record(f"Ada likes number {number}", f"m{number}") for number in range(45)))
    assert (await search(rig, "Ada and the violin")).total == 45
    await rig.rt[MemoryService].delete(SCOPE, [f"m{number}" for number in range(40)])
    assert (await search(rig, "Ada and the violin")).total == 5


async def test_word_frequencies_are_cached_for_a_minute(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    await rig.remember(*(record(f"Ada likes number {number}") for number in range(45)))
    sent = commands_of(rig, monkeypatch)
    await search(rig, "Ada and the violin")
    assert _counts(sent, b"ada") == _counts(sent, b"violin") == 1
    sent.clear()
    await search(rig, "Ada and her harp")
    assert (_counts(sent, b"ada"), _counts(sent, b"harp")) == (0, 1)


def _word_score(answer: MemoryRecordResultsResponse, word: str) -> float:
    """Return the keyword score of the memory that contains a word."""
    explanation = next(memory.explanation for memory in answer.memories if word in memory.text)
    assert explanation is not None
    return explanation.words or 0.0


def _counts(sent: list[bytes], term: bytes) -> int:
    """Count the requests for a term's document frequency.

    Each is a search for that term alone.
    """
    return sum(command.count(b"~@k:%b (@k:(%b) " % (term, term)) for command in sent)
