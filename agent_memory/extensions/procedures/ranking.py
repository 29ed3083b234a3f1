"""Rank procedures by how well they fit a situation and how often they help."""

from __future__ import annotations

from collections.abc import Collection

_MEANING, _WORDS = 0.7, 0.3


def word_overlap(one: Collection[str], other: Collection[str]) -> float:
    """Return the overlap of two sets of terms, from 0 to 1.

    L. R. Dice, "Measures of the amount of ecologic association between species", Ecology 26 (1945).
    """
    first, second = set(one), set(other)
    return 2 * len(first & second) / (len(first) + len(second)) if first and second else 0.0


def fit_of(similarity: float | None, overlap: float) -> float:
    """Return how well a procedure fits, from 0 to 1, by cosine (-1..1, None without a vector) and words."""
    if similarity is None:
        return overlap
    return _MEANING * max(similarity, 0.0) + _WORDS * overlap


def rank_score(fit: float, rate: float) -> float:
    """Return the ranking score: the whole fit for a rate of 1, half of it for 0."""
    return fit * (1 + rate) / 2
