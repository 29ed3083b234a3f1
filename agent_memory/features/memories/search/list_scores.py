"""Score candidates by words and passages, based only on the searched memories. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

from agent_memory.foundation.storage.search.results import Hits

# Robertson, Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009; the usual values.
_K1, _B = 1.2, 0.75
TERMS_FIELD = b"k"
# By chance alone, the best of many passages gains this much similarity per log(number of passages).
# Measured on assistants' answers (0.02 to 0.08; docs/recall.md).
_BY_CHANCE = 0.05
_RESCORED = 100
_FEW_TERMS = 6
_NEARLY_ALL = 0.8


def inverse_frequencies(total: int, frequencies: Mapping[str, int]) -> dict[str, float]:
    """Return each term's IDF: ln(1 + (N - n + 0.5) / (n + 0.5)), never negative."""
    return {term: math.log(1 + max(total - n + 0.5, 0.0) / (n + 0.5)) for term, n in frequencies.items()}


def bm25(documents: Sequence[str], weights: Mapping[str, float], mean_length: float) -> list[float]:
    """Return each document's BM25 score. Terms are separated by spaces."""
    is_weighted, scores = weights.__contains__, list[float]()
    fixed, growing = _K1 * (1 - _B), _K1 * _B / max(mean_length, 1.0)
    for document in documents:
        terms = document.split(" ")
        norm, score = fixed + growing * len(terms), 0.0
        counts: dict[str, int] = {}
        for term in filter(is_weighted, terms):
            counts[term] = counts.get(term, 0) + 1
        for term, count in counts.items():
            score += weights[term] * count * (_K1 + 1) / (count + norm)
        scores.append(score)
    return scores


def rescored(hits: Hits, weights: Mapping[str, float], mean_length: float) -> Hits:
    """Rescore the first hundred keyword hits with the given weights, best first.

    The others keep their order.
    """
    first = hits.texts(TERMS_FIELD, _RESCORED)
    scores = bm25([text.decode() for text in first], weights, mean_length)
    order = sorted(range(len(first)), key=lambda place: -scores[place])
    least, engine_least = min(scores, default=0.0), hits.values[len(first) - 1] if first else 0.0
    share = least / engine_least if engine_least > 0 else 0.0
    values = [*(scores[place] for place in order), *(value * share for value in hits.values[len(first) :])]
    places = [*order, *range(len(first), len(hits.names))]
    return Hits(hits.total, [hits.names[place] for place in places], values, [hits.rows[place] for place in places])


def is_quoted(hits: Hits | None, weights: Mapping[str, float]) -> bool:
    """True if the best hit contains 80% (by weight) of at least six query terms."""
    if hits is None or not hits.rows or len(weights) < _FEW_TERMS:
        return False
    terms = frozenset(hits.texts(TERMS_FIELD, 1)[0].decode().split(" "))
    return sum(weight for term, weight in weights.items() if term in terms) >= _NEARLY_ALL * sum(weights.values())


def mean_length(documents: Collection[str]) -> float:
    """Return the mean number of terms per document, at least 1."""
    return max(sum(document.count(" ") + 1 for document in documents) / max(len(documents), 1), 1.0)


def with_nearest_passages(near: Mapping[str, float], passages: Hits | None) -> tuple[dict[str, float], dict[str, int]]:
    """Return each memory's similarity, and the number of its best passage.

    For a long memory, average the similarities of its beginning and its best passage, minus the
    gain expected by chance.
    """
    similarities, farthest = dict(near), min(near.values(), default=0.0)
    best = _best_passages(passages)
    counts = passages.numbers(b"pn") if passages is not None and best else {}
    for mid, (name, distance) in best.items():
        by_chance = _BY_CHANCE * math.log(max(counts.get(name, 1.0), 1.0))
        similarities[mid] = (near.get(mid, farthest) + 1.0 - distance) / 2 - by_chance
    return similarities, _numbers(best)


def with_best_passages(words: Mapping[str, float], passages: Hits | None) -> tuple[dict[str, float], dict[str, int]]:
    """Raise each memory's score to that of its best passage.

    Return the scores and the passage numbers.
    """
    best = _best_passages(passages)
    return {**words, **{mid: max(score, words.get(mid, 0.0)) for mid, (_, score) in best.items()}}, _numbers(best)


def _best_passages(passages: Hits | None) -> dict[str, tuple[str, float]]:
    """Return each memory's best passage as ("<mid>.<number>", value)."""
    best: dict[str, tuple[str, float]] = {}
    for name, value in zip(passages.names, passages.values, strict=True) if passages is not None else ():
        best.setdefault(name.partition(".")[0], (name, value))
    return best


def _numbers(best: Mapping[str, tuple[str, float]]) -> dict[str, int]:
    return {mid: int(name.partition(".")[2]) for mid, (name, _) in best.items()}
