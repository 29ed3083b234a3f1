"""Fusing and scoring ranked lists: pure functions, each with the source of its formula."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
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
) -> list[Parts]:
    """Fuses by alpha * similarity + (1 - alpha) * words, each divided by the best of its list; best first, 0..1.

    The convex combination with theoretical minimum (0 for both) of Bruch, Gai, Ingber, "An Analysis of Fusion Functions for Hybrid
    Retrieval", ACM TOIS 2023. What the list of similarities lacks is at most as near as the last in it, and counts as that; so does what a
    list of words lacks that was cut off at a score of `last_word` (0 when it holds all matches), but for those `known` to share no word.
    """
    nearest = max(similarities.values(), default=0.0)
    best = max(words.values(), default=0.0)
    least = max(min(similarities.values(), default=0.0), 0.0)
    near_rank = {name: rank for rank, name in enumerate(_order(similarities), start=1)}
    word_rank = {name: rank for rank, name in enumerate(_order(words), start=1)}
    fused: list[Parts] = []
    for name in dict.fromkeys([*similarities, *words]):
        near = max(similarities.get(name, least), 0.0) / nearest if nearest > 0 else 0.0
        word = words.get(name, 0.0 if name in known else last_word) / best if best > 0 else 0.0
        score = alpha * near + (1 - alpha) * word
        fused.append(Parts(name, score, similarities.get(name), near_rank.get(name), words.get(name), word_rank.get(name)))
    return _ordered(fused)


def timed(fused: Iterable[Parts], in_time: Collection[str], fits: float = FITS) -> list[Parts]:
    """Puts what belongs to the time that a query names first, in the order of the scores, and brings the scores back to 0..1.

    A memory of that time whose score is less than `fits` says nothing of what is asked and gets a bonus only: who asks for the passport
    of last week means the passport, also when it was spoken of the week before; so do those behind the best thirty. With `fits` 0 the time
    is all that is asked, and all of it comes first.
    """
    found: list[Parts] = []
    places = _FIRST if fits else None
    for part in _ordered(fused):
        there = part.name in in_time
        first = there and part.score >= fits and places != 0
        if first and places is not None:
            places -= 1
        raised = 1.0 if first else TIME_BONUS if there else 0.0
        found.append(part._replace(score=(part.score + raised) / 2, in_time=there))
    return _ordered(found)


def relevant(parts: Iterable[Parts], least_similarity: float, also: Collection[str] = ()) -> list[Parts]:
    """Those that share a word with the query or are near enough to it, and what else counts as an answer: what is left out would be one
    for the answer's sake."""
    return [part for part in parts if part.words is not None or (part.similarity or 0.0) >= least_similarity or part.name in also]


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
    fresh = 0.5 ** (max(idle, 0.0) / 86400 / weights.half_life_accessed)
    new = 0.5 ** (max(age, 0.0) / 86400 / weights.half_life_created)
    return min(max(weights.freshness * fresh + weights.novelty * new, 0.0), 1.0)


def recency_score(similarity: float, accessed: datetime, created: datetime, now: datetime, weights: RecencyWeights) -> float:
    """The contract's formula: semantic * similarity + recency * clamp01(freshness * 2^(-d/half-life) + novelty * 2^(-d/half-life))."""
    recent = recency((now - accessed).total_seconds(), (now - created).total_seconds(), weights)
    return weights.semantic * similarity + weights.recency * recent


def _ordered(parts: Iterable[Parts]) -> list[Parts]:
    return sorted(parts, key=lambda part: (-part.score, part.name))


def _order(scores: Mapping[str, float]) -> list[str]:
    return sorted(scores, key=scores.__getitem__, reverse=True)
