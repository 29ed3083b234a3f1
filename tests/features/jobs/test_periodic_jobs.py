"""Test that each periodic job runs once per period, on any worker.

A crash or failure does not lose a job.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from docket import Docket

from agent_memory.feature_list import FEATURES
from agent_memory.features.memories.store import MemoryStore
from agent_memory.foundation.core.settings import load_settings
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.runtime import Runtime
from agent_memory_worker import periodic_runner
from agent_memory_worker.main import run_worker
from agent_memory_worker.periodic_runner import periods, run_job
from tests.registrations import registrations
from tests.support.rig import SCOPE, MakeRig, Rig, record
from tests.support.waiting import wait_until

OF_FEATURES = {name: seconds for one in registrations() for name, seconds in one.periods.items()}
PERIODS = {
    "compact": 600.0,
    "contradictions": 600.0,
    "items": 600.0,
    "timeline": 300.0,
    "usage": 900.0,
    "procedures": 3600.0,
    "profile": 3600.0,
    **OF_FEATURES,
}


@asynccontextmanager
async def working(rig: Rig) -> AsyncGenerator[None]:
    stop = asyncio.Event()
    worker = asyncio.create_task(run_worker(rig.rt, rig.settings, stop))
    try:
        yield
    finally:
        stop.set()
        await worker


async def scheduled(docket: Docket, number: int) -> dict[str, float]:
    """Wait until `number` jobs have a next run, and return the times of the runs in seconds."""

    async def times() -> dict[str, float]:
        async with docket.redis() as redis:
            found = {name.decode(): at for name, at in await redis.zrange(docket.queue_key, 0, -1, withscores=True)}
        return found if len(found) == number else {}

    return await wait_until(times, "the times of the jobs")


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Replace each job with one that only records its run."""
    seen: list[str] = []

    def seeing(name: str) -> Any:
        async def run(_: Runtime) -> int:
            seen.append(name)
            return 0

        return run

    jobs = {job.run: seeing(name) for feature in FEATURES for name, job in feature.schedule.items()}
    monkeypatch.setattr(periodic_runner, "import_name", jobs.__getitem__)
    return seen


def test_job_periods_follow_the_settings() -> None:
    assert periods(load_settings()) == PERIODS
    without = load_settings(COMPACTION_EVERY_MINUTES=0, USAGE_EVERY_MINUTES=0)
    assert periods(without) == {"procedures": 3600.0, "profile": 3600.0, "items": 600.0, "timeline": 300.0, **OF_FEATURES}
    assert periods(load_settings(LONG_TERM_MEMORY=False)) == {"items": 600.0, **OF_FEATURES}
    assert "forget" not in periods(load_settings(FORGETTING_ENABLED=True)), "nothing says what to forget"
    forgets = load_settings(FORGETTING_ENABLED=True, FORGETTING_MAX_AGE_DAYS=30, FORGETTING_EVERY_MINUTES=5)
    assert periods(forgets)["forget"] == 300.0


async def test_each_job_first_runs_one_period_after_the_first_start(rig: Rig, runs: list[str]) -> None:
    async with working(rig), rig.rt.docket() as docket:
        times = await scheduled(docket, len(PERIODS))
        seconds, _ = await rig.rt.client.time()
        in_tens = {name: round((at - seconds) / 10) for name, at in times.items()}
        assert in_tens == {name: round(period / 10) for name, period in PERIODS.items()}
        async with working(rig):
            assert await scheduled(docket, len(PERIODS)) == times, "workers that start do not put a job off"
    assert runs == []


async def test_job_runs_once_with_several_workers(rig: Rig, runs: list[str]) -> None:
    async with working(rig), working(rig), rig.rt.docket() as docket:
        await scheduled(docket, len(PERIODS))
        await rig.rt.client.zadd(docket.queue_key, {"compact": 1})

        async def again() -> bool:
            return (await rig.rt.client.zscore(docket.queue_key, "compact") or 0) > 1

        await wait_until(again, "its next time")
        seconds, _ = await rig.rt.client.time()
        assert round(((await scheduled(docket, len(PERIODS)))["compact"] - seconds) / 10) == 60
    assert runs == ["compact"]


async def test_failing_job_is_retried_soon_and_never_given_up(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    tries = 0

    async def broken(_: Runtime) -> int:
        nonlocal tries
        tries += 1
        raise ValueError("a defect")

    monkeypatch.setattr(periodic_runner, "import_name", lambda _: broken)
    for _ in range(20):
        assert await run_job(rig.rt, "procedures", 3600) == 300, "soon, not in an hour"
        assert await run_job(rig.rt, "procedures", 60) == 60
    assert tries == 40


async def test_job_that_kills_its_workers_is_skipped_until_its_next_period(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """docket redelivers the task each time its worker dies."""
    deaths = 0

    async def deadly(_: Runtime) -> int:
        nonlocal deaths
        deaths += 1
        raise asyncio.CancelledError

    monkeypatch.setattr(periodic_runner, "import_name", lambda _: deadly)
    for _ in range(8):
        with pytest.raises(asyncio.CancelledError):
            await run_job(rig.rt, "procedures", 3600)
    assert await run_job(rig.rt, "procedures", 3600) == 3600
    assert deaths == 8
    with pytest.raises(asyncio.CancelledError):
        await run_job(rig.rt, "procedures", 3600)
    assert deaths == 9, "the next period is a new try"


async def test_disabled_job_does_not_run(make_rig: MakeRig, runs: list[str]) -> None:
    async with make_rig(COMPACTION_EVERY_MINUTES=0) as rig, working(rig), rig.rt.docket() as docket:
        still = PERIODS.keys() - {"compact", "contradictions"}
        assert set(await scheduled(docket, len(still))) == still
    assert runs == []


async def test_periodic_jobs_do_not_count_as_pending_work(rig: Rig) -> None:
    async with working(rig), rig.rt.docket() as docket:
        await scheduled(docket, len(PERIODS))
        work = (await rig.rt.ready()).checks["work"]
        assert set(work) == set(DueKind)
        assert {state["pending"] for state in work.values()} == {0}


async def test_two_workers_run_periodic_jobs(make_rig: MakeRig) -> None:
    async with make_rig(COMPACTION_EVERY_MINUTES=0.001, SUMMARY_VIEW_REFRESH_EVERY_MINUTES=0.001) as rig:
        stop = asyncio.Event()
        workers = [asyncio.create_task(run_worker(rig.rt, rig.settings, stop)) for _ in range(2)]
        try:
            await rig.rt[MemoryStore].write(SCOPE, [record("Ada likes tea", f"m{n}") for n in range(4)])

            async def merged() -> bool:
                return len(await rig.stored()) == 1

            await wait_until(merged, "the periodic compaction")
        finally:
            stop.set()
            await asyncio.gather(*workers)
