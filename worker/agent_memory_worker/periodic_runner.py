"""Runs the periodic jobs that features announce, as often as each feature's `feature.py` says.

docket runs each once per period, whichever worker it is, and again when one dies.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

from docket import Docket, Perpetual

from agent_memory.feature_list import FEATURES
from agent_memory.foundation.core.errors import AgentMemoryError
from agent_memory.foundation.core.feature import import_name
from agent_memory.foundation.core.scope import Work, carrying_out
from agent_memory.foundation.core.settings import Settings
from agent_memory.foundation.storage.erasures import ErasureGuard
from agent_memory.foundation.storage.job_times import JobTimes
from agent_memory.runtime import Runtime

log = logging.getLogger(__name__)

# What failed is tried again after this long, or after its period if that is shorter.
_RETRY_SECONDS = 300.0


_JOBS = {name: job for feature in FEATURES for name, job in feature.schedule.items()}


class RecurringJob(Perpetual):
    """A Perpetual whose first run is one period after the first worker's start, not at it."""

    @property
    def initial_when(self) -> datetime:
        """When docket runs it if it has no time yet."""
        return datetime.now(UTC) + self.every


def periods(settings: Settings) -> dict[str, float]:
    """The jobs that are switched on, with the seconds from one run to the next."""
    minutes = {name: job.minutes(settings) for name, job in _JOBS.items()}
    return {name: value * 60 for name, value in minutes.items() if value is not None and value > 0}


def register_jobs(runtime: Runtime, docket: Docket) -> None:
    """Registers the jobs that are switched on; a worker sees to it that each has its next time. One that is switched off has none."""
    for name, seconds in periods(runtime.settings).items():
        docket.register(_task(runtime, name, seconds))


def _task(runtime: Runtime, name: str, seconds: float) -> Callable[..., Awaitable[None]]:
    async def job(perpetual: Perpetual = RecurringJob(every=timedelta(seconds=seconds), automatic=True)) -> None:  # noqa: B008
        perpetual.after(timedelta(seconds=await run_job(runtime, name, seconds)))

    job.__name__ = name
    return job


async def run_job(runtime: Runtime, name: str, seconds: float) -> float:
    """Runs a job and returns the seconds until its next run: its period, or sooner when it failed; it is never given up for that.

    A job that its workers died of again and again is left out until its next period.
    """
    try:
        if await runtime[JobTimes].count_begin(name) > runtime.settings.worker.max_attempts:
            log.error("periodic job %s never ended, its workers may have died of it: it is left out this time", name)
        else:
            with carrying_out(Work(since=await runtime[ErasureGuard].now(), waits=False)):
                log.info("periodic job %s: %d", name, await import_name(_JOBS[name].run)(runtime))
    except Exception as error:
        expected = isinstance(error, AgentMemoryError)
        log.log(logging.WARNING if expected else logging.ERROR, "periodic job %s failed: %s", name, error, exc_info=not expected)
        seconds = min(seconds, _RETRY_SECONDS)
    await runtime[JobTimes].forget_begins(name)
    return seconds
