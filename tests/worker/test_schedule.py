"""Periodic jobs: each runs once per period, whoever does it, and a crash or a failure loses none."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agent_memory.runtime import Runtime
from agent_memory.settings import load_settings
from agent_memory.tasks import DueKind
from agent_memory_worker import schedule
from agent_memory_worker.main import run_worker
from agent_memory_worker.schedule import periods
from agent_memory_worker.tasks import Tasks
from tests.support.rig import SCOPE, MakeRig, Rig, record
from tests.support.waiting import wait_until

P = DueKind.PERIODIC


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Replaces every job by one that only says that it ran."""
    seen: list[str] = []

    def job(name: str) -> Any:
        async def run(_: Runtime) -> int:
            seen.append(name)
            return 0

        return run

    monkeypatch.setattr(schedule, "_JOBS", {name: job(name) for name in ("compact", "forget", "usage", "views")})
    return seen


def test_which_jobs_run_and_how_often() -> None:
    assert periods(load_settings()) == {"compact": 600.0, "usage": 900.0, "views": 3600.0}
    assert periods(load_settings(COMPACTION_EVERY_MINUTES=0, USAGE_EVERY_MINUTES=0)) == {"views": 3600.0}
    assert periods(load_settings(LONG_TERM_MEMORY=False)) == {"views": 3600.0}
    assert "forget" not in periods(load_settings(FORGETTING_ENABLED=True)), "nothing says what to forget"
    forgets = load_settings(FORGETTING_ENABLED=True, FORGETTING_MAX_AGE_DAYS=30, FORGETTING_EVERY_MINUTES=5)
    assert periods(forgets)["forget"] == 300.0


async def test_workers_that_start_do_not_put_a_job_off(rig: Rig) -> None:
    await rig.rt.timetable.ensure({"compact": 600})
    first = (await rig.marks(P))["compact"]
    await rig.rt.timetable.ensure({"compact": 900, "views": 100})
    marks = await rig.marks(P)
    assert marks["compact"] == first
    assert set(marks) == {"compact", "views"}
    await rig.rt.timetable.ensure({"compact": 60})
    assert (await rig.marks(P))["compact"] < first, "a shorter period counts at once"


async def test_a_job_runs_once_and_is_marked_for_its_next_time(rig: Rig, runs: list[str]) -> None:
    await rig.rt.timetable.ensure(periods(rig.settings))
    await rig.work(P)
    assert runs == [], "not due yet"
    await rig.make_due(P)
    await rig.work(P)
    assert sorted(runs) == ["compact", "usage", "views"]
    seconds, _ = await rig.rt.client.time()
    marks = await rig.marks(P)
    assert {name: round((at / 1000 - seconds) / 10) for name, at in marks.items()} == {"compact": 60, "usage": 90, "views": 360}
    assert await rig.rt.client.exists(rig.keys.tries(P)) == 0


async def test_of_two_workers_one_does_it(rig: Rig, runs: list[str]) -> None:
    await rig.rt.timetable.ensure({"compact": 600})
    await rig.make_due(P)
    claims = [claim for _ in range(2) for claim in await rig.claim(P)]
    await asyncio.gather(*(Tasks(rig.rt).run_periodic(c.member, c.lease, c.attempt) for c in claims * 2))
    assert runs == ["compact"]


async def test_a_worker_that_dies_leaves_the_job_to_the_next(rig: Rig, runs: list[str]) -> None:
    await rig.rt.timetable.ensure({"compact": 600})
    await rig.make_due(P)
    await rig.rt.outbox.begin(P, await rig.claim(P), lease_seconds=60)
    assert await rig.claim(P) == []
    await rig.make_due(P)
    await rig.work(P)
    assert runs == ["compact"]
    assert set(await rig.marks(P)) == {"compact"}


async def test_a_job_that_fails_has_its_next_try_and_is_never_given_up(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(_: Runtime) -> int:
        raise ValueError("a defect")

    monkeypatch.setattr(schedule, "_JOBS", {"views": broken})
    for _ in range(20):
        await rig.rt.timetable.ensure({"views": 3600})
        await rig.make_due(P)
        await rig.work(P)
    seconds, _ = await rig.rt.client.time()
    assert (await rig.marks(P))["views"] / 1000 - seconds < 301, "soon, not in an hour"
    assert (await rig.rt.outbox.backlog())[P].dead == 0


async def test_a_job_that_is_switched_off_is_not_marked_again(make_rig: MakeRig, runs: list[str]) -> None:
    async with make_rig(COMPACTION_EVERY_MINUTES=0) as rig:
        await rig.rt.timetable.ensure({"compact": 600})
        await rig.make_due(P)
        await rig.work(P)
        assert (runs, await rig.marks(P)) == ([], {})


async def test_a_job_that_killed_its_workers_has_a_new_try_at_the_next_start(rig: Rig) -> None:
    await rig.rt.client.zadd(rig.keys.dead(P), {"compact": 1})
    await rig.rt.timetable.ensure({"compact": 600})
    assert (await rig.rt.outbox.backlog())[P].dead == 0


async def test_what_recurs_is_no_work_that_waits(rig: Rig) -> None:
    await rig.rt.timetable.ensure({"compact": 600})
    assert "periodic" not in (await rig.rt.ready()).checks["work"]


async def test_two_real_workers_share_the_periods(make_rig: MakeRig) -> None:
    async with make_rig(COMPACTION_EVERY_MINUTES=0.001, SUMMARY_VIEW_REFRESH_EVERY_MINUTES=0.001) as rig:
        stop = asyncio.Event()
        workers = [asyncio.create_task(run_worker(rig.rt, rig.settings, stop)) for _ in range(2)]
        try:
            await rig.rt.memories.write(SCOPE, [record("Ada likes tea", f"m{n}") for n in range(4)])

            async def merged() -> bool:
                return len(await rig.stored()) == 1

            await wait_until(merged, "the periodic compaction")
        finally:
            stop.set()
            await asyncio.gather(*workers)
