"""Test that words keep their weight after rewrites, before the engine has cleaned up."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import pytest

from agent_memory.features.memories.search.service import SearchService
from agent_memory.foundation.storage.search.indexes import memory_index_name
from agent_memory_client.models import SearchRequest
from tests.support.rig import SCOPE, Rig, record


@pytest.fixture
async def rewritten(rig: Rig) -> AsyncGenerator[Rig]:
    """Write each of forty memories three times, with the index's garbage collection disabled."""
    option = ("FT.CONFIG", "GET", "FORK_GC_CLEAN_THRESHOLD")
    before: Any = await rig.rt.client.execute_command(*option)
    value = next(iter(before.values())) if isinstance(before, dict) else before[0][1]
    await rig.rt.client.execute_command("FT.CONFIG", "SET", "FORK_GC_CLEAN_THRESHOLD", "1000000")
    try:
        for turn in range(3):
            texts = [f"The ferry number {n} sails{' to Elba, which is a small island' if n in (3, 17) else ''}" for n in range(40)]
            await rig.remember(*(record(text, f"m{n}", user_id="sailor", topics=[f"turn{turn}"]) for n, text in enumerate(texts)))
        yield rig
    finally:
        await rig.rt.client.execute_command("FT.CONFIG", "SET", "FORK_GC_CLEAN_THRESHOLD", value)


async def search(rig: Rig, text: str, **wanted: Any) -> Any:
    return await rig.rt[SearchService].search(SCOPE, SearchRequest.model_validate({"text": text, "limit": 50, **wanted}))


@pytest.mark.parametrize("users", [{}, {"user_id": {"eq": "sailor"}}], ids=["everybody", "one user"])
async def test_rare_word_outranks_a_common_one_after_rewrites(rewritten: Rig, users: dict[str, Any]) -> None:
    engine: Any = await rewritten.rt.client.execute_command(
        "FT.SEARCH", memory_index_name(rewritten.keys), "@k:(ferri|elba)", "NOCONTENT", "WITHSCORES", "SCORER", "BM25STD", "LIMIT", 0, 1
    )
    if engine[b"results"][0][b"score"] < 20:
        pytest.skip("this engine gets the weight of rewritten words right")
    for mode in ("keyword", "hybrid"):
        found = await search(rewritten, "ferry to Elba", search_mode=mode, explain=True, **users)
        assert {memory.id for memory in found.memories[:2]} == {"m3", "m17"}, mode
        assert found.total == 40, "what is common still matches"
        assert found.memories[0].score > found.memories[2].score + 0.1
    # A query of only common words keeps their scores; a query of one word has no other word to outweigh.
    assert (await search(rewritten, "ferry sails", search_mode="keyword", **users)).total == 40
    assert (await search(rewritten, "Elba", search_mode="keyword", **users)).total == 2
    assert (await search(rewritten, "Elba", search_mode="keyword", **users)).memories[0].score < 0.5, "no tag adds to a score"
