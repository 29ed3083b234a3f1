"""How common a query's words are is asked of the memories as they are now."""

from __future__ import annotations

from typing import Any

import pytest

from agent_memory.memories.search.service import SearchService
from agent_memory.memories.service import MemoryService
from agent_memory_client.models import MemoryRecordResultsResponse, SearchRequest
from tests.support.commands import commands_of
from tests.support.rig import SCOPE, Rig, record

FILTERED = {"topics": {"eq": "music"}}


async def search(rig: Rig, text: str, **more: Any) -> MemoryRecordResultsResponse:
    return await rig.rt[SearchService].search(SCOPE, SearchRequest.model_validate({"text": text, "limit": 50, "explain": True, **more}))


@pytest.mark.parametrize("more", [{}, FILTERED, {"distance_threshold": 1.5}], ids=["all", "filtered", "near"])
async def test_many_new_memories_are_noticed(rig: Rig, more: dict[str, Any]) -> None:
    await rig.remember(record("Ada has a violin", topics=["music"]))
    before = await search(rig, "Ada and the violin number 7", **more)
    assert before.explanation is not None
    assert before.explanation.left_out == []
    await rig.remember(*(record(f"Ada likes number {number}", topics=["music"]) for number in range(45)))
    after = await search(rig, "Ada and the violin number 7", **more)
    assert after.explanation is not None
    # A search by meaning alone leaves nothing out.
    assert after.explanation.left_out == ([] if "distance_threshold" in more else ["ada", "number"])
    assert after.total == 46


async def test_many_deleted_memories_are_noticed(rig: Rig) -> None:
    await rig.remember(*(record(f"Ada likes number {number}", f"m{number}") for number in range(45)))
    assert (await search(rig, "Ada and the violin")).total == 45
    await rig.rt[MemoryService].delete(SCOPE, [f"m{number}" for number in range(40)])
    found = await search(rig, "Ada and the violin")
    assert found.explanation is not None
    assert (found.total, found.explanation.left_out) == (5, [])


async def test_words_of_the_last_minute_are_not_counted_again(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    await rig.remember(*(record(f"Ada likes number {number}") for number in range(45)))
    sent = commands_of(rig, monkeypatch)
    await search(rig, "Ada and the violin")
    assert _counts(sent, b"ada") == _counts(sent, b"violin") == 1
    sent.clear()
    answer = await search(rig, "Ada and her harp")
    assert (_counts(sent, b"ada"), _counts(sent, b"harp")) == (0, 1)
    assert answer.explanation is not None
    assert answer.explanation.left_out == ["ada"], "what was counted before says so still"
    answer = await search(rig, "Lovelace")
    assert answer.explanation is not None
    assert answer.explanation.left_out == [], "of a single word nothing is left out, and it is not counted"


def _counts(sent: list[bytes], term: bytes) -> int:
    """How often it was asked in how many memories a term stands: a search for it alone."""
    return sum(command.count(b"~@k:%b (@k:(%b) " % (term, term)) for command in sent)
