"""How procedures are ranked, and when one has stopped helping (pure)."""

from __future__ import annotations

import math
from collections.abc import Collection

RECENT_OUTCOMES = 20
"""So many pieces of feedback, the last ones, say whether a procedure still helps."""
_MEANING, _WORDS = 0.7, 0.3
# Of the normal distribution, for 95 % on both sides.
_Z = 1.96
_STOPPED_BELOW = 0.5


def smoothed_rate(helped: int, failed: int) -> float:
    """How often something helps, from 0 to 1: the mean of a Beta(1 + helped, 1 + failed) distribution.

    That is Laplace's rule of succession ("Essai philosophique sur les probabilités", 1814): 0.5 while nothing is known, and sure of itself
    only after many tries.
    """
    return (helped + 1) / (helped + failed + 2)


def highest_rate(helped: int, failed: int) -> float:
    """The upper end of the 95 % score interval of a rate.

    E. B. Wilson, "Probable inference, the law of succession, and statistical inference", JASA 22 (1927). 1.0 while nothing is known.
    """
    count = helped + failed
    if not count:
        return 1.0
    rate, square = helped / count, _Z * _Z
    middle = rate + square / (2 * count)
    width = _Z * math.sqrt(rate * (1 - rate) / count + square / (4 * count * count))
    return (middle + width) / (1 + square / count)


def has_stopped_helping(outcomes: str) -> bool:
    """Whether the last outcomes ("1" helped, "0" did not) leave no doubt that it helps less than every second time.

    Four failures in a row are enough; of twenty, six that helped are.
    """
    helped = outcomes.count("1")
    return highest_rate(helped, len(outcomes) - helped) < _STOPPED_BELOW


def word_overlap(one: Collection[str], other: Collection[str]) -> float:
    """How much two sets of terms have in common, from 0 to 1.

    L. R. Dice, "Measures of the amount of ecologic association between species", Ecology 26 (1945).
    """
    first, second = set(one), set(other)
    return 2 * len(first & second) / (len(first) + len(second)) if first and second else 0.0


def fit_of(similarity: float | None, overlap: float) -> float:
    """How well a procedure fits a situation, from 0 to 1, by the cosine of the two (-1..1, None without a vector) and their words."""
    if similarity is None:
        return overlap
    return _MEANING * max(similarity, 0.0) + _WORDS * overlap


def rank_score(fit: float, rate: float) -> float:
    """What procedures are ordered by: one that always helps counts its whole fit, one that never does half of it."""
    return fit * (1 + rate) / 2
