"""Test memories that are neither close to the query nor share a word with it.

A search still shows the closest. A prompt does so only if a content filter leaves nothing else.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from agent_memory.features.memories.search.service import SearchService
from agent_memory.features.recall.service import RecallService
from agent_memory_client.models import MemoryPromptRequest, SearchRequest
from tests.support.rig import SCOPE, Rig, record

STRANGE = "quantum chromodynamics of gluons"
DATE = datetime(2024, 5, 1, tzinfo=UTC)
TEXTS = [
    f"{who} {what}" for who in ("Ada", "Ben", "Cleo") for what in ("paints boats", "bakes rye bread", "waters the ferns", "sold a piano")
]
MARKED: dict[str, Any] = {
    "topics": ["garden"],
    "entities": ["Elba"],
    "memory_type": "episodic",
    "event_date": DATE,
    "created_at": DATE,
    "metadata": {"source": "diary"},
    "category": "hobby",
    "session_id": "s1",
    "agent_id": "a1",
    "namespace": "n1",
    "user_id": "u1",
}
CONTENT_FILTERS: list[dict[str, Any]] = [
    {"topics": {"any": ["garden"]}},
    {"entities": {"eq": "Elba"}},
    {"memory_type": {"eq": "episodic"}},
    {"event_date": {"gte": "2024-04-01T00:00:00Z"}},
    {"created_at": {"lt": "2024-06-01T00:00:00Z"}},
    {"metadata": {"source": {"eq": "diary"}}},
    {"category": {"eq": "hobby"}},
    {"filter": {"and": [{"user_id": {"eq": "u1"}}, {"not": {"topics": {"none": ["garden"]}}}]}},
]
OWNER_FILTERS: list[dict[str, Any]] = [
    {"user_id": {"eq": "u1"}},
    {"namespace": {"eq": "n1"}},
    {"session_id": {"eq": "s1"}},
    {"agent_id": {"eq": "a1"}},
    {"filter": {"or": [{"user_id": {"eq": "u1"}}, {"not": {"namespace": {"eq": "n2"}}}]}},
]


@pytest.fixture
async def corpus(rig: Rig) -> Rig:
    """Store twelve memories. Three have every field that filters support."""
    await rig.remember(*(record(text, **(MARKED if "ferns" in text else {})) for text in TEXTS))
    return rig


async def search(rig: Rig, text: str, **wanted: Any) -> list[str]:
    answer = await rig.rt[SearchService].search(SCOPE, SearchRequest.model_validate({"text": text, **wanted}))
    return [memory.text for memory in answer.memories]


async def prompt(rig: Rig, text: str, **wanted: Any) -> set[str]:
    body = MemoryPromptRequest.model_validate({"query": text, "long_term_search": wanted or True})
    return {memory.text for memory in (await rig.rt[RecallService].prompt(SCOPE, body)).long_term_memories or ()}


@pytest.mark.parametrize("mode", [{}, {"search_mode": "hybrid"}, {"search_mode": "semantic"}], ids=str)
@pytest.mark.parametrize("query", [STRANGE, "preferences", "*", "?!", "what is it?"])
async def test_search_shows_the_nearest_memories_however_far(corpus: Rig, query: str, mode: dict[str, Any]) -> None:
    assert len(await search(corpus, query, limit=7, **mode)) == 7
    assert set(await search(corpus, query, limit=20, **mode)) == set(TEXTS)


@pytest.mark.parametrize("mode", [{}, {"search_mode": "hybrid"}], ids=str)
async def test_pages_show_each_distant_memory_once(corpus: Rig, mode: dict[str, Any]) -> None:
    pages = [await search(corpus, "Ada and gluons", limit=5, offset=start, **mode) for start in (0, 5, 10, 15)]
    assert [len(page) for page in pages] == [5, 5, 2, 0]
    assert sorted(text for page in pages for text in page) == sorted(TEXTS)
    answer = await corpus.rt[SearchService].search(SCOPE, SearchRequest.model_validate({"text": "Ada and gluons", "limit": 5, **mode}))
    assert (answer.total, answer.next_offset) == (12, 5)


async def test_matching_memories_come_before_distant_ones(corpus: Rig) -> None:
    found = await search(corpus, "who sold a piano?", limit=12)
    assert {text.partition(" ")[2] for text in found[:3]} == {"sold a piano"}


@pytest.mark.parametrize("query", [STRANGE, "*", "?!"])
async def test_keyword_search_without_words_finds_nothing(corpus: Rig, query: str) -> None:
    assert await search(corpus, query, search_mode="keyword") == []


async def test_query_without_words_finds_nothing_during_an_embedder_outage(corpus: Rig) -> None:
    corpus.embedder.away = True
    answer = await corpus.rt[SearchService].search(SCOPE, SearchRequest(text="*"))
    assert (answer.memories, len(answer.notices or ())) == ([], 1)


@pytest.mark.parametrize("wanted", [{}, *OWNER_FILTERS], ids=str)
async def test_prompt_shows_no_distant_memory_for_owner_filters(corpus: Rig, wanted: dict[str, Any]) -> None:
    assert await prompt(corpus, STRANGE, **wanted) == set()


@pytest.mark.parametrize("wanted", CONTENT_FILTERS, ids=str)
async def test_prompt_shows_distant_memories_left_by_a_content_filter(corpus: Rig, wanted: dict[str, Any]) -> None:
    assert await prompt(corpus, STRANGE, **wanted) == {text for text in TEXTS if "ferns" in text}


async def test_prompt_shows_only_near_memories_if_a_content_filter_leaves_any(corpus: Rig) -> None:
    await corpus.remember(record("Eve studies quantum chromodynamics", topics=["garden"]))
    assert await prompt(corpus, STRANGE, topics={"any": ["garden"]}) == {"Eve studies quantum chromodynamics"}


@pytest.fixture
async def alike(rig: Rig) -> Rig:
    await rig.remember(*(record(f"Ada: I like number {number}") for number in range(40)))
    return rig


COMMON = "Does Ada like ferries, or not?"


async def distances(rig: Rig, text: str) -> dict[str, float]:
    """Return the cosine distance between the unmodified text and each memory."""
    stored = [memory.text for memory in await rig.stored()]
    (query,) = np.asarray(await rig.rt.embedder.embed([text], role="query"), dtype=np.float64)
    others = np.asarray(await rig.rt.embedder.embed(stored), dtype=np.float64)
    return {told: 1 - float(query @ one / np.linalg.norm(query) / np.linalg.norm(one)) for told, one in zip(stored, others, strict=True)}


async def shown_distances(rig: Rig, text: str, **wanted: Any) -> dict[str, float]:
    answer = await rig.rt[SearchService].search(SCOPE, SearchRequest.model_validate({"text": text, "limit": 100, **wanted}))
    return {memory.text: memory.dist for memory in answer.memories}


@pytest.mark.parametrize("wanted", [{"search_mode": "semantic"}, {"distance_threshold": 2.0}], ids=str)
async def test_semantic_distance_is_that_of_the_original_query(alike: Rig, wanted: dict[str, Any]) -> None:
    assert await shown_distances(alike, COMMON, **wanted) == pytest.approx(await distances(alike, COMMON), abs=1e-4)


async def test_distance_threshold_applies_to_the_original_query(alike: Rig) -> None:
    expected = await distances(alike, COMMON)
    threshold = sorted(expected.values())[20] + 1e-4
    found = await shown_distances(alike, COMMON, distance_threshold=threshold)
    assert set(found) == {text for text, distance in expected.items() if distance <= threshold}


async def test_speaker_names_are_left_out_of_the_question_vector(alike: Rig) -> None:
    answer = await alike.rt[SearchService].search(SCOPE, SearchRequest(text=COMMON, explain=True, limit=1))
    assert answer.explanation is not None
    assert (answer.explanation.left_out, answer.explanation.query) == (["Ada"], "Does like ferries, or not?")
    answer = await alike.rt[SearchService].search(SCOPE, SearchRequest(text=COMMON, explain=True, limit=1, search_mode="semantic"))
    assert answer.explanation is not None
    assert (answer.explanation.left_out, answer.explanation.query) == ([], COMMON)


async def test_statements_of_a_named_speaker_come_before_questions_to_that_speaker(rig: Rig) -> None:
    numbers = range(5)
    statements = [f"Bob: I took ferry number {number}" for number in numbers]
    questions = [f"Ada: Bob, did you take ferry number {number}?" for number in numbers]
    await rig.remember(*map(record, [*statements, *questions]))
    for number in numbers:
        assert await search(rig, f"Did Bob take ferry number {number}?", limit=1) == [statements[number]]
        # If the query names both speakers, only the words and the meaning count.
        assert await search(rig, f"Did Ada and Bob take ferry number {number}?", limit=1) == [questions[number]]


async def test_cached_query_vectors_belong_to_the_embedded_text(alike: Rig) -> None:
    """Run the same query in semantic and hybrid mode."""
    by_both = await shown_distances(alike, COMMON)
    expected = pytest.approx(await distances(alike, COMMON), abs=1e-4)
    assert await shown_distances(alike, COMMON, search_mode="semantic") == expected
    assert await shown_distances(alike, COMMON) == pytest.approx(by_both, abs=1e-4)
    assert by_both != expected
