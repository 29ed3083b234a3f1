"""Test rank fusion."""

from __future__ import annotations

import pytest

from agent_memory.features.memories.search.ranking import (
    ALPHA,
    ALPHA_BY_CHANCE,
    Scored,
    fuse,
    relevant,
    saturated,
    score_parts,
    weight_of_meaning,
    with_bonus,
)
from agent_memory.features.memories.search.recency import RecencyWeights, novelties, recency, weigh_age


def names(fused: list[Scored]) -> list[str]:
    return [name for _, name in fused]


def by_name(fused: list[Scored]) -> dict[str, float]:
    return {name: score for score, name in fused}


def test_first_in_both_lists_scores_one() -> None:
    near, words = {"a": 0.8, "b": 0.4}, {"a": 12.0, "c": 3.0}
    score, name = fuse(near, words, 0.5)[0]
    best = score_parts(near, words)[name]
    assert (name, score, best["similarity_rank"], best["words_rank"]) == ("a", 1.0, 1, 1)


def test_alpha_weights_meaning_against_words() -> None:
    near, words = {"meant": 0.9, "other": 0.1}, {"said": 10.0, "other": 1.0}
    assert names(fuse(near, words, 1.0))[0] == "meant"
    assert names(fuse(near, words, 0.0))[0] == "said"


def test_memory_missing_from_the_vector_list_counts_as_its_last() -> None:
    scores = by_name(fuse({"a": 0.8, "b": 0.4}, {"c": 5.0}, 0.5))
    assert scores["c"] == pytest.approx(0.5 * 0.5 + 0.5)


def test_fusion_handles_empty_lists_and_negative_similarities() -> None:
    assert fuse({}, {}, 0.5) == []
    assert fuse({"a": -0.3}, {}, 0.5) == [(0.0, "a")]
    assert fuse({}, {"a": 0.0}, 0.5) == [(0.0, "a")]


def test_score_parts_are_values_and_ranks_in_each_list() -> None:
    parts = score_parts({"a": 0.4, "b": 0.9}, {"b": 1.0, "c": 3.0}, {"c"})
    fields = ("similarity", "similarity_rank", "words", "words_rank", "in_time")
    assert parts["a"] == dict(zip(fields, (0.4, 2, None, None, False), strict=True))
    assert parts["b"] == dict(zip(fields, (0.9, 1, 1.0, 2, False), strict=True))
    assert parts["c"] == dict(zip(fields, (None, None, 3.0, 1, True), strict=True))


def test_memory_of_the_requested_time_outranks_others_that_fit_nearly_as_well() -> None:
    plain = fuse({"a": 0.9, "b": 0.8, "c": 0.2}, {}, 1.0)
    assert names(with_bonus(plain, {"b"})) == ["b", "a", "c"]
    assert names(with_bonus(plain, {"c"})) == ["a", "b", "c"]
    assert all(0 <= score <= 1 for score, _ in with_bonus(plain, {"a", "b"}))


def test_all_memories_of_a_time_come_first_with_the_full_bonus() -> None:
    plain = fuse({"a": 0.9, "b": 0.8, "c": 0.2}, {}, 1.0)
    assert names(with_bonus(plain, {"b", "c"}, bonus=1.0)) == ["b", "c", "a"]


def test_missing_word_score_is_zero_for_memories_of_the_requested_time() -> None:
    scores = by_name(fuse({"a": 0.5, "b": 0.5, "c": 0.5}, {"a": 8.0}, 0.0, last_word=4.0, in_time={"b"}))
    assert scores == {"a": 1.0, "b": 0.0, "c": 0.5}


def test_equal_scores_have_a_stable_order() -> None:
    assert names(fuse({"b": 0.5, "a": 0.5}, {}, 0.5)) == names(fuse({"a": 0.5, "b": 0.5}, {}, 0.5))


def test_memory_neither_near_nor_sharing_a_word_is_not_relevant() -> None:
    near, words = {"near": 0.6, "far": 0.1, "word": 0.1}, {"word": 2.0}
    fused = fuse(near, words, 0.5)
    assert [set(names(part)) for part in relevant(fused, near, words, 0.2)] == [{"near", "word"}, {"far"}]
    assert [set(names(part)) for part in relevant(fused, near, words, 0.2, {"far"})] == [{"near", "word", "far"}, set()]


def test_saturation_is_monotonic_and_bounded() -> None:
    assert saturated(0) == 0
    assert saturated(-1) == 0
    assert 0 < saturated(1) < saturated(10) < saturated(1000) < 1


def test_recency_score_follows_the_contract() -> None:
    week, month = 7 * 86400.0, 30 * 86400.0
    assert recency(week, month, RecencyWeights()) == pytest.approx(0.6 * 0.5 + 0.4 * 0.5)
    assert recency(0.0, 0.0, RecencyWeights()) == pytest.approx(1.0)
    old, new = (0.9, "old"), (0.6, "new")
    assert weigh_age([old, new], [0.9, 0.6], [0.0, 1.0], RecencyWeights(0.8, 0.2)) == [old, new], "0.72 against 0.68"
    assert weigh_age([old, new], [0.9, 0.6], [0.0, 1.0], RecencyWeights(0.5, 0.5)) == [new, old]


def test_batched_novelties_equal_single_recency_scores() -> None:
    ages = [-5.0, 0.0, 1.0, 86400.0, 30 * 86400.0, 1e9]
    for novelty in (0.4, 1.0, 1.5, -1.0):
        weights = RecencyWeights(freshness=0.0, novelty=novelty)
        assert novelties(ages, weights) == pytest.approx([recency(0.0, age, weights) for age in ages])


def test_meaning_weighs_more_where_words_match_by_chance() -> None:
    near = {f"n{number}": 1 - number / 100 for number in range(30)}
    unalike = {f"w{number}": 30.0 - number for number in range(30)} | {"n3": 40.0}
    assert weight_of_meaning(near, unalike, names_time=False) == ALPHA_BY_CHANCE
    assert weight_of_meaning(near, {"n3": 2.0, "n5": 1.0, "w1": 3.0}, names_time=False) == ALPHA
    assert weight_of_meaning(near, {"n3": 2.0, "n5": 1.0, "w1": 3.0}, names_time=True) == ALPHA_BY_CHANCE
    assert weight_of_meaning(near, {}, names_time=False) == ALPHA_BY_CHANCE
    assert weight_of_meaning(near, {f"n{number}": 1.0 + number for number in range(8, 30)}, names_time=False) == ALPHA_BY_CHANCE
