"""Decide when to retry failed work, and which failures count as attempts."""

from __future__ import annotations

import random

from agent_memory.foundation.core.errors import ErasureUnderWay, ModelUnavailable, RedisUnavailable, TooMany, UnknownWork
from agent_memory.foundation.core.settings.worker import WorkerSettings

_LONGEST_BACKOFF_OF_OUTAGES = 30.0
_LONGEST_RETRY_AFTER = 300


def is_outage(error: Exception) -> bool:
    """True if a failure is an outage, which does not count as an attempt.

    Unusable model responses do count.
    """
    return isinstance(error, ModelUnavailable | RedisUnavailable | UnknownWork | TooMany | ErasureUnderWay)


def seconds_until_retry(error: Exception, attempt: int, settings: WorkerSettings) -> float:
    """Return the delay in seconds before a retry."""
    delay = backoff(attempt, settings.retry_base_seconds, settings.retry_max_seconds)
    if isinstance(error, ModelUnavailable | TooMany):
        return max(min(delay, _LONGEST_BACKOFF_OF_OUTAGES), float(min(error.retry_after, _LONGEST_RETRY_AFTER)))
    return delay


def backoff(attempt: int, base: float, most: float) -> float:
    """Return the delay in seconds before the next attempt, with equal jitter.

    The delay starts at `base`, doubles with each attempt, and is at most `most`. Source: "Exponential Backoff And
    Jitter", AWS Architecture Blog, 2015.
    """
    whole = min(most, base * 2 ** min(attempt - 1, 30))
    return whole / 2 + random.uniform(0, whole / 2)
