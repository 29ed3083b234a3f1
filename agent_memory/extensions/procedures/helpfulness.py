"""Estimate how often a procedure helps, based on feedback."""

from __future__ import annotations

import math

RECENT_OUTCOMES = 20
"""Number of recent outcomes that determine whether a procedure still helps."""
# Two-sided 95% quantile of the normal distribution.
_Z = 1.96
_STOPPED_BELOW = 0.5


def smoothed_rate(helped: int, failed: int) -> float:
    """Return the estimated success rate, the mean of Beta(1 + helped, 1 + failed).

    Source: Laplace's rule of succession ("Essai philosophique sur les probabilités", 1814).
    """
    return (helped + 1) / (helped + failed + 2)


def highest_rate(helped: int, failed: int) -> float:
    """Return the upper bound of the 95% score interval for the success rate.

    Source: E. B. Wilson, "Probable inference, the law of succession, and statistical inference", JASA 22 (1927).
    """
    count = helped + failed
    if not count:
        return 1.0
    rate, square = helped / count, _Z * _Z
    middle = rate + square / (2 * count)
    width = _Z * math.sqrt(rate * (1 - rate) / count + square / (4 * count * count))
    return (middle + width) / (1 + square / count)


def has_stopped_helping(outcomes: str) -> bool:
    """True if the success rate is below one half with 95% confidence.

    Each outcome is "1" (helped) or "0" (failed).
    """
    helped = outcomes.count("1")
    return highest_rate(helped, len(outcomes) - helped) < _STOPPED_BELOW
