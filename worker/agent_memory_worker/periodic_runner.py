"""Run each periodic job once per period, on any worker."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

from docket import Docket, Perpetual

from agent_memory.feature_list import FEATURES
from agent_memory.foundation.core.errors import AgentMemoryError
from agent_memory.foundation.core.feature import import_name
from agent_memory.foundation.core.logs import get_logger
from agent_memory.foundation.core.scope import Work, carrying_out
from agent_memory.foundation.core.settings import Settings
from agent_memory.foundation.storage.erasures import ErasureGuard
from agent_memory.foundation.storage.job_times import JobTimes
from agent_memory.runtime import Runtime

log = get_logger(__name__)

# Seconds until a failed job runs again, unless its period is shorter.
_RETRY_SECONDS = 300.0


_JOBS = {name: job for feature in FEATURES for name, job in feature.schedule.items()}


class RecurringJob(Perpetual):
    """A Perpetual that first runs one period after the first worker starts."""

    @property
    def initial_when(self) -> datetime:
        return datetime.now(UTC) + self.every


def periods(settings: Settings) -> dict[str, float]:
    """Return the enabled jobs and their periods in seconds."""
    minutes = {name: job.minutes(settings) for name, job in _JOBS.items()}
    return {name: value * 60 for name, value in minutes.items() if value is not None and value > 0}


def register_jobs(runtime: Runtime, docket: Docket) -> None:
    for name, seconds in periods(runtime.settings).items():
        docket.register(_task(runtime, name, seconds))


def _task(runtime: Runtime, name: str, seconds: float) -> Callable[..., Awaitable[None]]:
    async def job(perpetual: Perpetual = RecurringJob(every=timedelta(seconds=seconds), automatic=True)) -> None:  # noqa: B008
        perpetual.after(timedelta(seconds=await run_job(runtime, name, seconds)))

    job.__name__ = name
    return job


async def run_job(runtime: Runtime, name: str, seconds: float) -> float:
    """Run a job. Return the seconds until its next run, which is sooner after a failure.

    Skip this run if workers have repeatedly died while running the job.
    """
    try:
        if await runtime[JobTimes].count_begin(name) > runtime.settings.worker.max_attempts:
            log.error("periodic job did not finish last time and may have crashed its worker; skipping this run", job=name)
        else:
            with carrying_out(Work(since=await runtime[ErasureGuard].now(), waits=False)):
                log.info("periodic job done", job=name, count=await import_name(_JOBS[name].run)(runtime.current))
    except Exception as error:
        expected = isinstance(error, AgentMemoryError)
        log.log(logging.WARNING if expected else logging.ERROR, "periodic job failed", job=name, error=error, exc_info=not expected)
        seconds = min(seconds, _RETRY_SECONDS)
    await runtime[JobTimes].forget_begins(name)
    return seconds
