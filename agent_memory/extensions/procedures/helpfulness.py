"""How often a procedure helps by the feedback on it, and when it has stopped helping (pure)."""

from __future__ import annotations

import math

RECENT_OUTCOMES = 20
"""So many pieces of feedback, the last ones, say whether a procedure still helps."""
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
