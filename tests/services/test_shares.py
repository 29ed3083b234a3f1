"""What is known of a query's words is asked once in a while, and anew when the memories are others by then."""

from __future__ import annotations

from typing import Any

import pytest

from agent_memory.services import shares
from agent_memory_client.models import MemoryRecordResultsResponse, SearchRequest
from tests.support.commands import commands_of
from tests.support.rig import SCOPE, Rig, record

FILTERED = {"topics": {"eq": "music"}}


@pytest.fixture(autouse=True)
def for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was looked at once is trusted for as long as the test runs."""
    monkeypatch.setattr(shares, "_TRUST_SECONDS", 3600.0)


async def search(rig: Rig, text: str, **more: Any) -> MemoryRecordResultsResponse:
    return await rig.rt.search.search(SCOPE, SearchRequest.model_validate({"text": text, "limit": 50, "explain": True, **more}))


async def test_the_same_words_are_asked_about_once(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    await rig.remember(*(record(f"Ada has violin {number}", topics=["music"]) for number in range(5)))
    sent = commands_of(rig, monkeypatch)

    async def round_trips(text: str, **more: Any) -> int:
        sent.clear()
        assert (await search(rig, text, **more)).total == 5
        return sum(b"FT.SEARCH" in packed for packed in sent)

    assert await round_trips("the violin of Ada") == 2
    assert await round_trips("Ada and her violin") == 1
    assert await round_trips("Ada and her violin", **FILTERED) == 1
    assert await round_trips("Ada and her old violin") == 2, "a word that was not asked about yet"


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
    await rig.rt.longterm.delete(SCOPE, [f"m{number}" for number in range(40)])
    found = await search(rig, "Ada and the violin")
    assert found.explanation is not None
    assert (found.total, found.explanation.left_out) == (5, [])
