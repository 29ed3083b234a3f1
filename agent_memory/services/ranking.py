"""Fusing and scoring ranked lists: pure functions, each with the source of its formula."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

# The weight of meaning against words when the caller gives none; docs/recall.md has the measurements (0.35 to 0.55 are alike).
ALPHA = 0.45
# A memory of the time that the query names comes before all others when its own score (0..1) is at least this: it is about what is asked.
FITS = 0.1
# At most so many do: what was told of that time on other days stays within reach.
_FIRST = 30
# What belonging to that time adds to the rest.
TIME_BONUS = 0.3


Scored = tuple[float, str]
"""A score (0..1) and the name of what has it."""


class Parts(NamedTuple):
    """A fused score and what it is made of; ranks count from 1, None is "not in this list"."""

    name: str
    score: float
    similarity: float | None
    similarity_rank: int | None
    words: float | None
    words_rank: int | None
    in_time: bool = False


def fuse(
    similarities: Mapping[str, float],
    words: Mapping[str, float],
    alpha: float,
    *,
    last_word: float = 0.0,
    known: Collection[str] = (),
) -> list[Scored]:
    """Fuses by alpha * similarity + (1 - alpha) * words, each divided by the best of its list; best first, 0..1.

    The convex combination with theoretical minimum (0 for both) of Bruch, Gai, Ingber, "An Analysis of Fusion Functions for Hybrid
    Retrieval", ACM TOIS 2023. What the list of similarities lacks is at most as near as the last in it, and counts as that; so does what a
    list of words lacks that was cut off at a score of `last_word` (0 when it holds all matches), but for those `known` to share no word.
    """
    nearest = max(similarities.values(), default=0.0)
    best = max(words.values(), default=0.0)
    least = max(min(similarities.values(), default=0.0), 0.0)
    rest = 1 - alpha
    # Without a best there is nothing to divide by, and nothing to add. Hundreds of these are made for a search of ten.
    near_part = alpha / nearest if nearest > 0 else 0.0
    word_part = rest / best if best > 0 else 0.0
    if known:
        words = {**{name: 0.0 for name in known if name in similarities}, **words}
    of_words = words.get
    fused = [(near_part * (near if near > 0 else 0.0) + word_part * of_words(name, last_word), name) for name, near in similarities.items()]
    far = near_part * least
    fused += [(far + word_part * word, name) for name, word in words.items() if name not in similarities]
    return _ordered(fused)


def timed(fused: Iterable[Scored], in_time: Collection[str], fits: float = FITS) -> list[Scored]:
    """Puts what belongs to the time that a query names first, in the order of the scores, and brings the scores back to 0..1.

    A memory of that time whose score is less than `fits` says nothing of what is asked and gets a bonus only: who asks for the passport
    of last week means the passport, also when it was spoken of the week before; so do those behind the best thirty. With `fits` 0 the time
    is all that is asked, and all of it comes first.
    """
    found: list[Scored] = []
    places = _FIRST if fits else None
    for score, name in _ordered(fused):
        there = name in in_time
        first = there and score >= fits and places != 0
        if first and places is not None:
            places -= 1
        raised = 1.0 if first else TIME_BONUS if there else 0.0
        found.append(((score + raised) / 2, name))
    return _ordered(found)


def relevant(
    fused: Iterable[Scored],
    similarities: Mapping[str, float],
    words: Collection[str],
    least_similarity: float,
    also: Collection[str] = (),
) -> tuple[list[Scored], list[Scored]]:
    """Those that share a word with the query or are near enough to it, and what else counts as an answer; then the rest, which would be
    answers for the answer's sake."""
    if similarities and min(similarities.values()) >= least_similarity:
        return list(fused), []
    there = {name for name, near in similarities.items() if near >= least_similarity}.union(words, also)
    order = list(fused)
    return [one for one in order if one[1] in there], [one for one in order if one[1] not in there]


class PartsOf:
    """Says what fused scores are made of, for those that somebody asks about."""

    def __init__(self, similarities: Mapping[str, float], words: Mapping[str, float], in_time: Collection[str] = ()) -> None:
        self._similarities = similarities
        self._words = words
        self._in_time = in_time
        self._ranks: tuple[Mapping[str, int], Mapping[str, int]] | None = None

    def __call__(self, score: float, name: str) -> Parts:
        """The parts of one score."""
        if self._ranks is None:
            self._ranks = _ranks(self._similarities), _ranks(self._words)
        near, word = self._ranks
        return Parts(
            name, score, self._similarities.get(name), near.get(name), self._words.get(name), word.get(name), name in self._in_time
        )


def saturated(score: float) -> float:
    """A BM25 score (0 and up) as 0..1, the same for the same match on every page: x / (x + 10), 10 being a middling score."""
    return score / (score + 10.0) if score > 0 else 0.0


@dataclass(frozen=True, slots=True)
class RecencyWeights:
    """The contract's weights and half-lives (days) of the recency score."""

    semantic: float = 0.8
    recency: float = 0.2
    freshness: float = 0.6
    novelty: float = 0.4
    half_life_accessed: float = 7.0
    half_life_created: float = 30.0


# What a search that says nothing of age gets: between memories that fit alike the newer one comes first, and that is all. Only the time
# of writing counts, so that being found does not make a memory be found again.
MILD = RecencyWeights(semantic=1.0, recency=0.01, freshness=0.0, novelty=1.0)


def recency(idle: float, age: float, weights: RecencyWeights) -> float:
    """How recent a memory is, 0 to 1, from the seconds since it was read and since it was written: the contract's decay."""
    # A part that weighs nothing need not be computed: a search asks for hundreds of these.
    recent = weights.novelty * 0.5 ** (age / 86400 / weights.half_life_created) if age > 0 else weights.novelty
    if weights.freshness:
        recent += weights.freshness * 0.5 ** (max(idle, 0.0) / 86400 / weights.half_life_accessed)
    return 0.0 if recent < 0 else recent if recent < 1 else 1.0


def novelties(ages: Iterable[float], weights: RecencyWeights) -> list[float]:
    """As `recency`, of many memories by their ages alone, for weights without freshness."""
    novelty, half_life = weights.novelty, weights.half_life_created * 86400
    if not 0 <= novelty <= 1:
        return [recency(age, age, weights) for age in ages]
    return [novelty * 0.5 ** (age / half_life) if age > 0 else novelty for age in ages]


def recency_score(similarity: float, accessed: datetime, created: datetime, now: datetime, weights: RecencyWeights) -> float:
    """The contract's formula: semantic * similarity + recency * clamp01(freshness * 2^(-d/half-life) + novelty * 2^(-d/half-life))."""
    recent = recency((now - accessed).total_seconds(), (now - created).total_seconds(), weights)
    return weights.semantic * similarity + weights.recency * recent


def head(order: Sequence[Scored], count: int, weights: RecencyWeights) -> Sequence[Scored]:
    """Those of a list, best first, that may be among the first `count` once age has had its say, which adds 0 to `weights.recency`."""
    if len(order) <= count:
        return order
    least = order[count - 1][0] - weights.recency / weights.semantic
    end = count
    while end < len(order) and order[end][0] >= least:
        end += 1
    return order[:end]


def _ordered(fused: Iterable[Scored]) -> list[Scored]:
    """Best first, equal ones by their names backwards: the engine's own order is that of the last writing."""
    return sorted(fused, reverse=True)


def _ranks(scores: Mapping[str, float]) -> Mapping[str, int]:
    return {name: rank for rank, name in enumerate(sorted(scores, key=scores.__getitem__, reverse=True), start=1)}
