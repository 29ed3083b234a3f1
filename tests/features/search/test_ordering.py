"""Test the order of results with a recency boost, query rewriting, and a reranking model."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agent_memory.features.memories.search.service import SearchService
from agent_memory.features.memories.service import MemoryService
from agent_memory.features.memories.usage.log import UsageLog
from agent_memory.features.recall.service import RecallService
from agent_memory.foundation.core.settings import load_settings
from agent_memory.foundation.llm.openai.chat import OpenAIChat
from agent_memory.foundation.llm.rerank import RemoteReranker
from agent_memory_client.models import MemoryPromptRequest, MemoryRecordResultsResponse, SearchRequest
from tests.support.lookalike import Lookalike
from tests.support.rig import SCOPE, MakeRig, Rig, record

NOW = datetime.now(UTC)


async def search(rig: Rig, text: str, optimize: bool = False, **wanted: Any) -> MemoryRecordResultsResponse:
    return await rig.rt[SearchService].search(SCOPE, SearchRequest.model_validate({"text": text, **wanted}), optimize_query=optimize)


async def ids(rig: Rig, text: str, **wanted: Any) -> list[str]:
    return [one.id for one in (await search(rig, text, **wanted)).memories]


def seconds(request: pytest.FixtureRequest) -> str:
    """Return a model's time budget in seconds. It is short only in timeout tests."""
    return "0.3" if "timeout" in request.node.name else "20"


def dated(text: str, name: str, days: float, **more: Any) -> Any:
    moment = NOW - timedelta(days=days)
    return record(text, name, created_at=moment, last_accessed=moment, **more)


# ----------------------------------------------------------------------------------------------------------------- recency


@pytest.fixture
async def aged(rig: Rig) -> Rig:
    """Store twelve old memories that match well, and a new one that matches less well."""
    await rig.remember(
        *(dated(f"The ferry to Elba leaves at {hour} from the harbour", f"old{hour}", 900 + hour) for hour in range(1, 13)),
        dated("The ferry to Elba now leaves from the southern harbour", "new", 1),
        dated("Plum trees need pruning", "off topic", 0),
    )
    return rig


@pytest.mark.parametrize("mode", [{}, {"search_mode": "semantic"}, {"search_mode": "keyword"}, {"distance_threshold": 1.0}], ids=str)
@pytest.mark.parametrize(
    "asked",
    [{"recency_boost": True}, {"server_side_recency": True}, {"recency_recency_weight": 0.5}, {"recency_novelty_weight": 1}],
    ids=str,
)
async def test_recency_boost_is_applied_before_the_limit(aged: Rig, mode: dict[str, Any], asked: dict[str, Any]) -> None:
    query = "When does the ferry to Elba leave from the harbour?"
    assert "new" not in await ids(aged, query, limit=3, recency_boost=False, **mode)
    assert (await ids(aged, query, limit=1, **asked, **mode)) == ["new"]
    # It also works with filters, and pages continue without gaps.
    pages = [await ids(aged, query, limit=5, offset=offset, memory_type={"eq": "semantic"}, **asked, **mode) for offset in (0, 5, 10)]
    whole = await ids(aged, query, limit=15, **asked, **mode)
    assert [name for page in pages for name in page] == whole


async def test_recency_weights_and_half_lives_change_the_order(rig: Rig) -> None:
    text = "The ferry to Elba leaves at noon"
    await rig.remember(
        record(text, "read", created_at=NOW - timedelta(days=60), last_accessed=NOW),
        record(text, "written", created_at=NOW - timedelta(days=2), last_accessed=NOW - timedelta(days=40)),
    )

    async def first(**weights: float) -> str:
        return (await ids(rig, "ferry to Elba", search_mode="semantic", recency_boost=True, **weights))[0]

    assert await first(recency_freshness_weight=1.0, recency_novelty_weight=0.0) == "read"
    assert await first(recency_freshness_weight=0.0, recency_novelty_weight=1.0) == "written"
    # With a half-life of years every read counts as recent, so that the creation time decides.
    both = {"recency_freshness_weight": 0.5, "recency_novelty_weight": 0.5}
    assert await first(**both) == "read"
    assert await first(**both, recency_half_life_last_access_days=36500.0) == "written"
    assert await first(recency_recency_weight=-1.0, recency_novelty_weight=0.0) == "written"


async def test_counted_reading_makes_a_memory_recent(rig: Rig) -> None:
    text = "The ferry to Elba leaves at noon"
    await rig.remember(dated(text, "a", 60), dated(text, "b", 60), dated(text, "c", 60))
    await rig.rt[MemoryService].get(SCOPE, "b")
    await rig.rt[UsageLog].flush()
    assert (await ids(rig, "ferry", search_mode="keyword", recency_boost=True))[0] == "b"


async def test_by_default_recency_decides_only_between_equal_matches(aged: Rig) -> None:
    await aged.remember(dated("Marta lives in Lisbon", "then", 400), dated("Marta lives in Porto", "now", 0))
    assert (await ids(aged, "Marta lives in"))[:2] == ["now", "then"]
    for mode in ({}, {"search_mode": "semantic"}, {"search_mode": "keyword"}):
        assert (await ids(aged, "Does Marta live in Lisbon?", **mode))[0] == "then"
    assert (await ids(aged, "pruning plum trees"))[0] == "off topic"


async def test_recency_boost_changes_ranks_but_not_scores(aged: Rig) -> None:
    query = "When does the ferry to Elba leave?"
    plain = {one.id: pytest.approx((one.score, one.dist)) for one in (await search(aged, query, limit=50, recency_boost=False)).memories}
    boosted = (await search(aged, query, limit=50, recency_boost=True, explain=True)).memories
    assert {one.id: (one.score, one.dist) for one in boosted} == plain
    recency = {one.id: one.explanation.recency for one in boosted if one.explanation is not None}
    assert 0.9 < (recency["new"] or 0) <= 1
    assert (recency["old1"] or 0) < 0.001


# ------------------------------------------------------------------------------------------------------------ query rewrite


@pytest.fixture
async def worded(make_rig: MakeRig, chat: OpenAIChat, request: pytest.FixtureRequest) -> AsyncGenerator[Rig]:
    async with make_rig(chat, QUERY_OPTIMIZATION_SECONDS=seconds(request)) as rig:
        await rig.remember(record("The ferry to Elba leaves at noon", "ferry"), record("Plum trees need pruning in March", "plums"))
        yield rig


QUESTION = "Would you please tell me whenever it is that the ferry to Elba leaves?"


async def test_optimized_query_is_rewritten_by_the_model_once(worded: Rig, lookalike: Lookalike) -> None:
    found = await search(worded, QUESTION, optimize=True)
    assert (found.memories[0].id, found.notices) == ("ferry", None)
    assert lookalike.calls["chat"] == 1
    await search(worded, QUESTION, optimize=True, search_mode="semantic", offset=1)
    assert lookalike.calls["chat"] == 1, "the same question is not asked twice"
    body = MemoryPromptRequest(query="When do the plum trees need pruning?", long_term_search=True)
    answer = await worded.rt[RecallService].prompt(SCOPE, body, optimize_query=True)
    assert lookalike.calls["chat"] == 2
    assert answer.notices is None
    # Only the semantic part uses the rewritten query, and only on request.
    for more in ({"search_mode": "keyword"}, {"search_mode": "hybrid"}):
        assert (await search(worded, "the ferry to Elba", optimize=True, **more)).memories
    await search(worded, "the ferry to Elba")
    assert lookalike.calls["chat"] == 2


@pytest.mark.parametrize("fault", ["timeout", "500", "garbage", "empty_choices", "401"])
async def test_failed_query_rewrite_falls_back_to_the_plain_query_with_a_notice(worded: Rig, lookalike: Lookalike, fault: str) -> None:
    plain = await search(worded, QUESTION)
    lookalike.set_fault(fault)
    found = await search(worded, QUESTION, optimize=True)
    assert [one.id for one in found.memories] == [one.id for one in plain.memories]
    assert found.notices is not None
    assert found.notices[0].startswith("optimize_query: ")
    body = MemoryPromptRequest(query=QUESTION, long_term_search=True)
    answer = await worded.rt[RecallService].prompt(SCOPE, body, optimize_query=True)
    assert answer.notices is not None
    assert next(one.id for one in answer.long_term_memories or []) == "ferry"


async def test_query_rewrite_without_a_model_returns_a_notice(rig: Rig) -> None:
    await rig.remember(record("The ferry to Elba leaves at noon", "ferry"))
    found = await search(rig, QUESTION, optimize=True)
    assert found.memories[0].id == "ferry"
    assert found.notices == ["optimize_query: no language model is configured; searched for the query as it is"]


# ------------------------------------------------------------------------------------------------------------ a reranking model


@pytest.fixture
async def reranked(make_rig: MakeRig, lookalike: Lookalike, request: pytest.FixtureRequest) -> AsyncGenerator[Rig]:
    settings = load_settings(RERANK_BASE_URL=lookalike.url, RERANK_API_KEY="sk-test-0001")
    reranker = RemoteReranker(settings.models)
    async with make_rig(reranker=reranker, RERANK_SECONDS=seconds(request), RERANK_CANDIDATES=4) as rig:
        # The look-alike prefers texts that share the most words with the query, without stop words, relative to their length.
        await rig.remember(*(record(f"ferry number {n} {'and more of it ' * n}".strip(), f"f{n}") for n in range(8)))
        yield rig
    await reranker.close()


async def test_top_results_follow_the_rerankers_order(reranked: Rig, lookalike: Lookalike) -> None:
    lookalike.set_fault("500", 1, "rerank")
    plain = await search(reranked, "ferry number", limit=8, search_mode="keyword")
    assert plain.notices == ["the reranking model gave no answer in time: ordered without it"]
    order = [one.id for one in plain.memories]
    found = await search(reranked, "ferry number", limit=8, search_mode="keyword", explain=True)
    assert [one.id for one in found.memories] == [*reversed(order[:4]), *order[4:]]
    assert found.notices is None
    scores = [one.explanation.reranked for one in found.memories if one.explanation is not None]
    assert scores[4:] == [None] * 4
    assert scores[:4] == sorted((score for score in scores[:4] if score is not None), reverse=True)
    assert {one.id: one.score for one in found.memories} == {one.id: one.score for one in plain.memories}
    body = lookalike.bodies("rerank")[-1]
    assert (body["query"], len(body["documents"]), body["top_n"], body["model"]) == ("ferry number", 4, 4, "rerank-v3.5")
    pages = [await ids(reranked, "ferry number", limit=2, offset=offset, search_mode="keyword") for offset in (0, 2, 4, 6)]
    assert [name for page in pages for name in page] == [one.id for one in found.memories]


@pytest.mark.parametrize("fault", ["timeout", "429", "html", "short_batch", "nan", "null"])
async def test_failed_reranking_falls_back_to_the_plain_order_with_a_notice(reranked: Rig, lookalike: Lookalike, fault: str) -> None:
    lookalike.set_fault(fault, None, "rerank")
    found = await search(reranked, "ferry number", limit=8)
    assert len(found.memories) == 8
    assert found.notices == ["the reranking model gave no answer in time: ordered without it"]
    answer = await reranked.rt[RecallService].prompt(SCOPE, MemoryPromptRequest(query="ferry number", long_term_search=True))
    assert answer.long_term_memories
    assert answer.notices == found.notices


async def test_listings_are_not_reranked(reranked: Rig, lookalike: Lookalike) -> None:
    assert len(await ids(reranked, "", limit=8)) == 8
    assert lookalike.calls["rerank"] == 0
