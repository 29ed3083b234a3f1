"""Decide when to retry failed work, and which failures count as attempts.

`WORKER_MAX_ATTEMPTS` limits the number of attempts. `foundation/storage/lua/retry_limit.lua` enforces this limit.
"""

from __future__ import annotations

import random

from agent_memory.foundation.core.errors import ErasureUnderWay, ModelUnavailable, RedisUnavailable, TooMany, UnknownWork
from agent_memory.foundation.core.settings.worker import WorkerSettings

_LONGEST_BACKOFF_OF_OUTAGES = 30.0
_LONGEST_RETRY_AFTER = 300


def is_outage(error: Exception) -> bool:
    """True if a failure does not count as an attempt.

    Such failures are an unavailable model or Redis, an exceeded limit, an erasure, and work that only a newer version
    supports. Unusable model answers do count.
    """
    return isinstance(error, ModelUnavailable | RedisUnavailable | UnknownWork | TooMany | ErasureUnderWay)


def seconds_until_retry(error: Exception, attempt: int, settings: WorkerSettings) -> float:
    """Return the delay in seconds before work that failed with `error` is retried."""
    delay = backoff(attempt, settings.retry_base_seconds, settings.retry_max_seconds)
    if isinstance(error, ModelUnavailable | TooMany):
        return max(min(delay, _LONGEST_BACKOFF_OF_OUTAGES), float(min(error.retry_after, _LONGEST_RETRY_AFTER)))
    return delay


def backoff(attempt: int, base: float, most: float) -> float:
    """Return the delay in seconds before the next attempt, with equal jitter.

    The delay starts at `base`, doubles with each attempt, and is at most `most`.

    Source: "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.
    """
    whole = min(most, base * 2 ** min(attempt - 1, 30))
    return whole / 2 + random.uniform(0, whole / 2)
