"""Rank procedures by how well they fit a situation, and by how often they helped."""

from __future__ import annotations

from collections.abc import Collection

_MEANING, _WORDS = 0.7, 0.3


def word_overlap(one: Collection[str], other: Collection[str]) -> float:
    """Return the Dice coefficient of two sets of terms, from 0 to 1, or 0.0 if either set is empty.

    Source: L. R. Dice, "Measures of the amount of ecologic association between species", Ecology 26 (1945).
    """
    first, second = set(one), set(other)
    return 2 * len(first & second) / (len(first) + len(second)) if first and second else 0.0


def fit_of(similarity: float | None, overlap: float) -> float:
    """Return how well a procedure fits, from 0 to 1: 70% cosine similarity (at least 0) and 30% word overlap.

    If `similarity` is None, the fit is the overlap.
    """
    if similarity is None:
        return overlap
    return _MEANING * max(similarity, 0.0) + _WORDS * overlap


def rank_score(fit: float, rate: float) -> float:
    """Return the ranking score: the fit if the success rate is 1, half of the fit if the rate is 0."""
    return fit * (1 + rate) / 2
