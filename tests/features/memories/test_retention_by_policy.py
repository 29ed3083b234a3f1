"""Test the background forgetting that the settings define."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from agent_memory.features.memories.retention import service
from agent_memory.features.memories.store import MemoryStore
from agent_memory.foundation.api.principals import scope_of_work
from agent_memory_worker.memories import retention
from agent_memory_worker.periodic_runner import run_job
from tests.support.rig import SCOPE, MakeRig, record


def days_ago(days: float) -> datetime:
    return datetime.now(UTC) - timedelta(days=days)


async def test_configured_policy_applies_to_every_tenant(make_rig: MakeRig) -> None:
    async with make_rig(FORGETTING_ENABLED=True, FORGETTING_MAX_AGE_DAYS=30) as rig:
        for scope in (SCOPE, scope_of_work("another tenant")):
            await rig.rt[MemoryStore].write(
                scope, [record("old", created_at=days_ago(40)), record("kept", created_at=days_ago(40), pinned=True)]
            )
        assert await run_job(rig.rt, "forget", 60) == 60
        for scope in (SCOPE, scope_of_work("another tenant")):
            assert [one and one.id for one in await rig.rt[MemoryStore].get(scope, ["old", "kept"])] == [None, "kept"]


async def test_background_forgetting_deletes_more_than_one_call_may(make_rig: MakeRig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "MAX_DELETIONS", 100)
    monkeypatch.setattr(service, "MAX_DELETIONS", 100)
    async with make_rig(FORGETTING_ENABLED=True, FORGETTING_BUDGET_KEEP_TOP_N=10) as rig:
        await rig.rt[MemoryStore].write(SCOPE, [record(f"m{n}", created_at=days_ago(n), last_accessed=days_ago(n)) for n in range(330)])
        assert await retention.forget_by_settings(rig.rt) == 320
        assert {one.id for one in await rig.stored()} == {f"m{n}" for n in range(10)}


async def test_default_settings_forget_nothing(make_rig: MakeRig) -> None:
    async with make_rig() as rig:
        await rig.rt[MemoryStore].write(SCOPE, [record("old", created_at=days_ago(4000))])
        assert await retention.forget_by_settings(rig.rt) == 0
