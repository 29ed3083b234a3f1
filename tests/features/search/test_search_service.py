"""Test searches: modes, paging, thresholds, odd queries, and embedder outages."""

from __future__ import annotations

from typing import Any

import pytest

from agent_memory.features.memories.search.service import SearchService
from agent_memory.features.memories.service import MemoryService
from agent_memory.features.memories.store import MemoryStore
from agent_memory.foundation.core.errors import BadInput, UnsupportedRequest
from agent_memory.foundation.core.scope import Scope
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory_client.models import MemoryRecordResultsResponse, SearchRequest
from tests.support.rig import SCOPE, MakeRig, Rig, record

MODES = ["semantic", "keyword", "hybrid"]


async def search(rig: Rig, text: str | None = None, scope: Scope = SCOPE, **wanted: Any) -> MemoryRecordResultsResponse:
    return await rig.rt[SearchService].search(scope, SearchRequest.model_validate({"text": text, **wanted}))


async def texts(rig: Rig, text: str | None = None, **wanted: Any) -> list[str]:
    return [one.text for one in (await search(rig, text, **wanted)).memories]


CORPUS = (
    "Anna's e-mail is anna.berg+test@example.com",
    "The café in Zürich serves crème brûlée",
    "東京タワーに行きました",
    "Order ABC-12345/Z was shipped",
    "We use C++ and v1.2.3 of the library",
    "Анна живёт в Осло",
    "The ferry to Elba leaves at noon",
    "user_id=42 failed",
)


@pytest.fixture
async def corpus(rig: Rig) -> Rig:
    await rig.remember(*(record(text) for text in CORPUS))
    return rig


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("anna.berg+test@example.com", 0),
        ("ANNA.BERG+TEST@EXAMPLE.COM?", 0),
        ("zurich CAFE", 1),
        ("Zürich", 1),
        ("Zu\u0308rich", 1),
        ("creme brulee", 1),
        ("東京", 2),
        ("タワー", 2),
        ("ABC-12345/Z", 3),
        ("abc-12345/z!", 3),
        ("C++", 4),
        ("v1.2.3", 4),
        ("осло", 5),
        ("When does the ferry leave?", 6),
        ("user_id=42", 7),
    ],
)
async def test_keyword_search_finds_words_of_every_kind(corpus: Rig, query: str, expected: int) -> None:
    found = await search(corpus, query, search_mode="keyword")
    assert found.memories[0].text == CORPUS[expected]
    assert found.memories[0].score_type == "keyword"


ODD_QUERIES = ["the and of", "?!", "...", "-@t:{x}", "*", "|", "(", '"', "\\", "~", "%%", "$q", "{}", "=>[KNN 5 @v $q]"]


@pytest.mark.parametrize("mode", [*MODES, None])
async def test_odd_queries_are_not_parsed_as_syntax(corpus: Rig, mode: str | None) -> None:
    for query in ODD_QUERIES:
        found = await search(corpus, query, **({} if mode is None else {"search_mode": mode}))
        if mode == "keyword" and (query == "the and of" or not any(c.isalnum() for c in query)):
            assert (found.memories, found.total, found.next_offset) == ([], 0, None), query
        elif mode != "keyword":
            assert {one.text for one in found.memories} == set(CORPUS), f"by meaning, something is always nearest: {query}"
        assert not await texts(corpus, query, scope=Scope("other"), **({} if mode is None else {"search_mode": mode})), query


@pytest.mark.parametrize("blank", [None, "", "  \n"])
async def test_search_without_a_query_lists_everything_newest_first(corpus: Rig, blank: str | None) -> None:
    found = await search(corpus, blank)
    assert found.total == len(CORPUS)
    assert [one.created_at for one in found.memories] == sorted((one.created_at for one in found.memories), reverse=True)
    assert {(one.dist, one.score, one.score_type) for one in found.memories} == {(0.0, None, None)}


async def test_semantic_search_orders_by_distance(corpus: Rig) -> None:
    found = await search(corpus, "When does the boat to the island depart?", search_mode="semantic")
    best = found.memories[0]
    assert best.text == CORPUS[6]
    assert best.score == pytest.approx(1 - best.dist)
    assert [one.dist for one in found.memories] == sorted(one.dist for one in found.memories)
    assert all(0 <= one.dist <= 2 for one in found.memories)


async def test_distance_threshold_limits_the_results(corpus: Rig) -> None:
    everything = {one.text: one.dist for one in (await search(corpus, "ferry to Elba", search_mode="semantic", limit=100)).memories}
    for threshold in (0.0, 0.3, 0.9, 2.0, 5.0):
        found = await search(corpus, "ferry to Elba", distance_threshold=threshold, limit=100)
        near = {text for text, distance in everything.items() if distance <= threshold}
        assert {one.text for one in found.memories} == near
        assert found.total == len(near)
    for mode in ("keyword", "hybrid"):
        with pytest.raises(UnsupportedRequest):
            await search(corpus, "ferry", search_mode=mode, distance_threshold=0.5)


async def test_distance_threshold_works_with_a_negated_filter(rig: Rig) -> None:
    await rig.remember(*(record(text, topics=["out" if at % 3 == 1 else "in"]) for at, text in enumerate(CORPUS)))
    kept = {"and": [{"not": {"and": [{"topics": {"any": ["out"]}}, {"memory_type": {"eq": "semantic"}}]}}]}
    near = await search(rig, "ferry", search_mode="semantic", filter=kept, limit=100)
    within = await search(rig, "ferry", distance_threshold=2.0, filter=kept, limit=100, explain=True)
    assert [hit.text for hit in within.memories] == [hit.text for hit in near.memories]
    assert [hit.dist for hit in within.memories] == pytest.approx([hit.dist for hit in near.memories], abs=1e-5)
    assert within.total == 5
    assert (await search(rig, "ferry", distance_threshold=2.0, filter=kept, limit=1)).total == 5


@pytest.mark.parametrize("wanted", [{"search_mode": "semantic"}, {"search_mode": "keyword"}, {}, {"distance_threshold": 2.0}, {"text": ""}])
async def test_pages_have_no_duplicates_and_no_gaps(rig: Rig, wanted: dict[str, Any]) -> None:
    await rig.remember(*(record(f"plum tree number {number} of {number % 7} trees in garden {number % 13}") for number in range(60)))
    query = {"text": "plum tree number 3 in garden 5", **wanted}
    seen: list[str] = []
    offset: int | None = 0
    while offset is not None:
        assert offset == len(seen)
        page = await search(rig, limit=7, offset=offset, **query)
        assert page.total == 60
        seen += [one.id for one in page.memories]
        offset = page.next_offset
    assert len(seen) == len(set(seen)) == 60
    whole = [one.id for one in (await search(rig, limit=100, **query)).memories]
    assert len(whole) == 60
    beyond = await search(rig, limit=10, offset=500, **query)
    assert (beyond.memories, beyond.next_offset) == ([], None)


async def test_deep_pages_do_not_repeat_earlier_results(rig: Rig) -> None:
    """The lists behind a page grow with its offset, but earlier results must not repeat."""
    words = ("plum", "fig", "pear", "quince", "apple", "cherry", "peach")
    await rig.remember(
        *(record(f"{words[n % 7]} {words[n % 5]} tree number {n} in garden {n % 13}, {' '.join(words[: n % 6])}") for n in range(260))
    )
    wanted: list[dict[str, Any]] = [
        {},
        {"search_mode": "hybrid", "hybrid_alpha": 0.5},
        {"search_mode": "semantic"},
        {"search_mode": "keyword"},
    ]
    for options in wanted:
        seen: list[str] = []
        offset: int | None = 0
        while offset is not None:
            page = await search(rig, "cherry and pear tree in garden 5", limit=20, offset=offset, **options)
            seen += [one.id for one in page.memories]
            offset = page.next_offset
        assert len(seen) == len(set(seen)) == 260, options


@pytest.mark.parametrize("mode", MODES)
async def test_offset_beyond_the_results_returns_an_empty_page(corpus: Rig, mode: str) -> None:
    for offset, limit in ((1_000_000, 100), (999_999, 1), (100_000, 10)):
        assert (await search(corpus, "ferry", search_mode=mode, offset=offset, limit=limit)).memories == []
        assert (await search(corpus, "", offset=offset, limit=limit)).memories == []


async def test_search_falls_back_to_keywords_if_the_embedder_is_down(corpus: Rig) -> None:
    corpus.embedder.away = True
    for mode in MODES:
        found = await search(corpus, "When does the ferry leave?", search_mode=mode)
        assert [one.text for one in found.memories] == [CORPUS[6]]
        assert found.memories[0].score_type == "keyword"
    assert await texts(corpus, "the and of", search_mode="semantic") == []


async def test_memory_without_a_vector_yet_is_found_by_keyword_and_by_default(rig: Rig) -> None:
    await rig.remember(record("figs are ripe"))
    await rig.rt[MemoryStore].write(SCOPE, [record("the ferry leaves at noon")])
    assert await texts(rig, "ferry", search_mode="keyword") == ["the ferry leaves at noon"]
    assert "the ferry leaves at noon" in await texts(rig, "ferry")
    assert len(await rig.marks(DueKind.MEMORY)) == 1


@pytest.mark.parametrize("mode", MODES)
async def test_filters_apply_in_every_mode(rig: Rig, mode: str) -> None:
    await rig.remember(
        record("ferry of mine", user_id="me", namespace="n"),
        record("ferry of yours", user_id="you", namespace="n"),
        record("ferry of nobody"),
        record("ferry elsewhere", user_id="me", namespace="m"),
    )
    wanted = {"search_mode": mode, "user_id": {"eq": "me"}, "namespace": {"eq": "n"}}
    assert await texts(rig, "ferry", **wanted) == ["ferry of mine"]
    # An empty namespace returns no results, and no memories of other owners.
    for nowhere in ({"namespace": {"eq": "empty"}}, {"user_id": {"eq": "ME"}}, {"topics": {"any": ["x"]}}):
        found = await search(rig, "ferry", search_mode=mode, **nowhere)
        assert (found.memories, found.total) == ([], 0)
    assert await texts(rig, "ferry", scope=Scope("other"), search_mode=mode) == []
    narrow = Scope("default", users=frozenset({"you"}))
    assert await texts(rig, "ferry", scope=narrow, search_mode=mode) == ["ferry of yours"]


async def test_no_search_returns_a_deleted_memory(corpus: Rig) -> None:
    await corpus.rt[MemoryService].delete(SCOPE, [CORPUS[6]])
    for mode in MODES:
        assert CORPUS[6] not in await texts(corpus, "When does the ferry leave?", search_mode=mode)


@pytest.mark.parametrize(
    "scorer", ["BM25STD", "BM25", "BM25STD.NORM", "BM25STD.TANH", "TFIDF", "TFIDF.DOCNORM", "DISMAX", "DOCSCORE", "HAMMING"]
)
async def test_every_text_scorer_works_or_is_refused(corpus: Rig, scorer: str) -> None:
    refused: BadInput | None = None
    try:
        found = await texts(corpus, "ferry noon", search_mode="keyword", text_scorer=scorer)
    except BadInput as error:
        refused, found = error, []
    if refused is None:
        assert found == [CORPUS[6]]
    else:
        # Some engines lack these two scorers; the error says so.
        assert (refused.field, scorer in ("BM25STD.NORM", "BM25STD.TANH")) == ("text_scorer", True)


async def test_very_long_queries_are_answered(corpus: Rig) -> None:
    for query in ("ferry " * 20_000, " ".join(f"word{number}" for number in range(5000)) + " ferry", "x" * 100_000 + " ferry"):
        for mode in MODES:
            await search(corpus, query, search_mode=mode)
    assert await texts(corpus, "ferry " * 20_000, search_mode="keyword") == [CORPUS[6]]


async def test_search_is_refused_if_long_term_memory_is_off(make_rig: MakeRig) -> None:
    async with make_rig(LONG_TERM_MEMORY="false") as rig:
        with pytest.raises(UnsupportedRequest):
            await search(rig, "ferry")
