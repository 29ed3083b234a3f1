"""The periodic jobs: which there are, how often, and how each is run once per period by all workers together.

Each has one mark in the outbox, due at its next time. Whoever claims it runs the job and marks it for the time after; a worker that dies
meanwhile leaves the mark to the next one when its lease ends, so nothing is lost and nobody is the leader.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from agent_memory.errors import AgentMemoryError, RedisUnavailable, UnknownWork
from agent_memory.runtime import Runtime
from agent_memory.settings import Settings
from agent_memory_worker.compact import compact_changed
from agent_memory_worker.forget import forget_by_settings
from agent_memory_worker.sweep import end_forgotten, sweep
from agent_memory_worker.views import order_refreshes

log = logging.getLogger(__name__)

# What failed is tried again after this long, or after its period if that is shorter.
_RETRY_SECONDS = 300.0


async def _keep_up(runtime: Runtime) -> int:
    """Brings the index up to what was read and what has ended since, and ends what is over. None of it is waited for by any read."""
    await runtime.reindexer.drop_former()
    return await runtime.usage_store.fold() + await sweep(runtime) + await end_forgotten(runtime)


_JOBS: dict[str, Callable[[Runtime], Awaitable[int]]] = {
    "compact": compact_changed,
    "forget": forget_by_settings,
    "views": order_refreshes,
    "usage": _keep_up,
}


def periods(settings: Settings) -> dict[str, float]:
    """The jobs that are switched on, with the seconds from one run's end to the next."""
    minutes = {"views": settings.views.refresh_every_minutes}
    if settings.longterm.enabled:
        minutes["compact"] = settings.compaction.every_minutes
        minutes["usage"] = settings.longterm.usage_every_minutes
    rules = settings.forgetting
    if rules.enabled and (rules.max_age_days, rules.max_inactive_days, rules.budget_keep_top_n) != (None, None, None):
        minutes["forget"] = rules.every_minutes
    return {name: value * 60 for name, value in minutes.items() if value > 0}


async def run_job(runtime: Runtime, name: str) -> None:
    """Runs a job and marks it for its next time; one that is switched off here is not marked again.

    A job that fails has its next try soon, and is never given up for that. Raises RedisUnavailable: then the mark is still the old one;
    and UnknownWork for a job of a newer version.
    """
    if name not in _JOBS:
        raise UnknownWork(f"only a newer version knows the periodic job {name[:64]!r}")
    seconds = periods(runtime.settings).get(name)
    if seconds is None:
        return
    try:
        done = await _JOBS[name](runtime)
        log.info("periodic job %s: %d", name, done)
    except RedisUnavailable:
        raise
    except Exception as error:
        expected = isinstance(error, AgentMemoryError)
        log.log(logging.WARNING if expected else logging.ERROR, "periodic job %s failed: %s", name, error, exc_info=not expected)
        seconds = min(seconds, _RETRY_SECONDS)
    await runtime.timetable.again(name, seconds)
