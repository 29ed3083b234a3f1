"""When work that failed is tried again, and which failures count as a try.

How many tries there are is `WORKER_MAX_ATTEMPTS`; `agent_memory/foundation/storage/lua/retry_limit.lua` gives up what has used them.
"""

from __future__ import annotations

import random

from agent_memory.foundation.core.errors import ErasureUnderWay, ModelUnavailable, RedisUnavailable, TooMany, UnknownWork
from agent_memory.foundation.core.settings.worker import WorkerSettings

_LONGEST_BACKOFF_OF_OUTAGES = 30.0
_LONGEST_RETRY_AFTER = 300


def is_outage(error: Exception) -> bool:
    """Whether a failure counts as no try: a model that is away, a limit or an erasure is nobody's fault here; the work waits as long as it
    takes.

    Unusable answers have their tries.
    """
    return isinstance(error, ModelUnavailable | RedisUnavailable | UnknownWork | TooMany | ErasureUnderWay)


def seconds_until_retry(error: Exception, attempt: int, settings: WorkerSettings) -> float:
    """How long work waits that failed of `error`."""
    delay = backoff(attempt, settings.retry_base_seconds, settings.retry_max_seconds)
    if isinstance(error, ModelUnavailable | TooMany):
        return max(min(delay, _LONGEST_BACKOFF_OF_OUTAGES), float(min(error.retry_after, _LONGEST_RETRY_AFTER)))
    return delay


def backoff(attempt: int, base: float, most: float) -> float:
    """Seconds until the next try: doubling from `base`, at most `most`, with equal jitter.

    "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.
    """
    whole = min(most, base * 2 ** min(attempt - 1, 30))
    return whole / 2 + random.uniform(0, whole / 2)
