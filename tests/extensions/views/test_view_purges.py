"""Test how purges affect summary views."""

from __future__ import annotations

import httpx
import pytest

from agent_memory.features.jobs import operations as background
from agent_memory.features.memories.service import MemoryService
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.interfaces.http.app import create_app
from tests.support.rig import SCOPE, Rig, record

VIEWS = "/v1/summary-views"


async def test_purge_deletes_summaries_of_purged_memories(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "MAX_WAIT_SECONDS", 0.0)
    transport = httpx.ASGITransport(create_app(rig.settings, rig.rt))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        await rig.rt[MemoryService].store(SCOPE, [record("The page said ten", "p", user_id="ana", source_class="tool")])
        view = (await client.post(VIEWS, json={"source": "long_term", "group_by": ["user_id"]})).json()["id"]
        await client.post(f"{VIEWS}/{view}/partitions/run", json={"group": {"user_id": "ana"}})
        path = "/v1/long-term-memory/purge"
        asked = await client.post(path, json={"source_class": ["tool"]})
        await rig.work(DueKind.ORDER)
        stages = (await client.get(f"/v1/operations/{asked.headers['x-operation-id']}")).json()["stages"]
        assert (stages["matched"], stages["summaries"]) == (1, 1)
        assert len((await client.get(f"{VIEWS}/{view}/partitions")).json()) == 1, "a dry run takes nothing"
        await client.post(path, json={"source_class": ["tool"]}, params={"dry_run": "false", "user_id": "ana"})
        await rig.work(DueKind.ORDER)
        assert (await client.get(f"{VIEWS}/{view}/partitions")).json() == []
