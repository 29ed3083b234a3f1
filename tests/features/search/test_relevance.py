"""Test relevance estimates, which use a user's other memories as the baseline.

Prompts and `min_relevance` filter by the estimate.
"""

from __future__ import annotations

from typing import Any

import pytest

from agent_memory.features.memories.search.relevance.estimate import Background, RelevanceEstimate
from agent_memory.features.memories.search.service import SearchService
from agent_memory.features.recall.service import RecallService
from agent_memory_client.models import MemoryPromptRequest, MemoryRecordResult, MemoryTypeEnum, SearchRequest
from tests.support.rig import SCOPE, Rig, record

CHATTER = [
    f"{who} {what} on day {day}."
    for day in range(1, 11)
    for who in ("My neighbor", "The postman", "Our teacher")
    for what in ("walked the dog", "planted tulips", "baked rye bread", "repaired the fence")
]
KNOWN = "My telescope has a mirror of twelve inches."


def noise(count: int = 50) -> dict[str, float]:
    return {f"n{number}": 0.2 - number / 1000 for number in range(count)}


def test_memory_far_above_the_median_of_its_list_is_relevant() -> None:
    estimate = RelevanceEstimate({"hit": 0.6} | noise(), {"hit": 12.0, "n3": 3.0}, Background(500))
    assert estimate.known_factor == 1.0
    assert estimate("hit") > 0.3 > 0.05 > estimate("n3") > estimate("n40") >= 0.0


def test_no_memory_is_relevant_if_none_stands_out_or_shares_words() -> None:
    estimate = RelevanceEstimate(noise(), {}, Background(500, unknown=1.0))
    assert [estimate(name) for name in noise()] == [0.0] * 50


def test_memory_slightly_nearer_than_few_others_is_not_relevant() -> None:
    few = {"near": 0.43} | {f"n{number}": 0.3 - number / 1000 for number in range(49)}
    assert RelevanceEstimate(few, {"near": 3.0}, Background(80, unknown=0.85)).known_factor == 0.0
    assert RelevanceEstimate({**few, "near": 0.8}, {"near": 3.0}, Background(80, unknown=0.4)).known_factor == 1.0


def test_filtered_memories_have_no_unknown_word_penalty() -> None:
    assert RelevanceEstimate(noise(10), {}, Background(500, unknown=1.0, narrowed=True)).known_factor == 1.0


def test_few_distant_memories_are_not_relevant() -> None:
    near, far = (RelevanceEstimate({"a": top, "b": 0.05, "c": 0.02}, {}, Background(30, unknown=1.0)) for top in (0.7, 0.1))
    assert near("a") > 0.3
    assert [far(name) for name in "abc"] == [0.0] * 3


def test_relevance_does_not_depend_on_the_scale_of_word_scores() -> None:
    one, ten = (RelevanceEstimate({"hit": 0.5} | noise(), {"hit": 2.0 * scale, "n1": 1.0 * scale}, Background(500)) for scale in (1, 10))
    assert [one(name) for name in ("hit", "n1", "n9")] == [ten(name) for name in ("hit", "n1", "n9")]


def test_without_vectors_the_best_keyword_match_is_most_relevant() -> None:
    estimate = RelevanceEstimate({}, {"a": 8.0, "b": 2.0}, Background(500, unknown=0.5))
    assert 0.5 > estimate("a") > estimate("b") > 0.0


@pytest.fixture
async def diary(rig: Rig) -> Rig:
    texts = [*CHATTER, KNOWN]
    await rig.remember(*(record(text, memory_type=MemoryTypeEnum.MESSAGE) for text in texts))
    return rig


async def search(rig: Rig, text: str, **wanted: Any) -> list[MemoryRecordResult]:
    return (await rig.rt[SearchService].search(SCOPE, SearchRequest.model_validate({"text": text, **wanted}))).memories


async def prompt(rig: Rig, text: str, **wanted: Any) -> list[str]:
    body = MemoryPromptRequest.model_validate({"query": text, "long_term_search": wanted or True})
    return [memory.text for memory in (await rig.rt[RecallService].prompt(SCOPE, body)).long_term_memories or ()]


@pytest.mark.parametrize("mode", [{}, {"search_mode": "semantic"}, {"search_mode": "keyword"}], ids=str)
async def test_search_reports_relevance_and_min_relevance_filters_by_it(diary: Rig, mode: dict[str, Any]) -> None:
    found = await search(diary, "How large is the mirror of my telescope?", limit=20, **mode)
    relevances = [memory.relevance for memory in found]
    assert found[0].text == KNOWN
    assert relevances[0] is not None
    assert relevances[0] > 0.3
    assert all(relevance is not None and relevance < relevances[0] for relevance in relevances[1:])
    assert [memory.text for memory in await search(diary, "the mirror of my telescope", min_relevance=0.3, **mode)] == [KNOWN]


async def test_search_without_min_relevance_returns_the_nearest_and_listings_have_none(diary: Rig) -> None:
    assert len(await search(diary, "quantum chromodynamics", limit=20)) == 20
    assert [memory.relevance for memory in await search(diary, "", limit=3, min_relevance=1)] == [None] * 3


async def test_prompt_shows_only_relevant_memories(diary: Rig) -> None:
    shown = await prompt(diary, "How large is the mirror of my telescope?")
    assert KNOWN in shown
    assert len(shown) < 10
    assert await prompt(diary, "Which antibiotic did Dr Osei prescribe to Farida?") == []


@pytest.mark.parametrize("wanted", [True, {}, {"user_id": {"eq": "u"}}], ids=str)
async def test_every_form_of_long_term_search_has_the_same_default_limit(rig: Rig, wanted: Any) -> None:
    await rig.remember(*(record(f"I buy stamp number {number}.", user_id="u") for number in range(40)))
    body = MemoryPromptRequest.model_validate({"query": "Which stamp did I buy?", "user_id": "u", "long_term_search": wanted})
    assert len((await rig.rt[RecallService].prompt(SCOPE, body)).long_term_memories or ()) == 20
