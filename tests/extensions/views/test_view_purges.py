"""Test how purges affect summary views."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from agent_memory.extensions.views.service import ViewService
from agent_memory.features.jobs import operations as background
from agent_memory.features.memories.changes.service import HistoryService
from agent_memory.features.memories.retention.service import Policy, RetentionService
from agent_memory.features.memories.service import MemoryService
from agent_memory.features.memories.upkeep.scan import Selection
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.interfaces.http.app import create_app
from agent_memory_client.models import CreateSummaryViewRequest, RunSummaryViewPartitionRequest
from agent_memory_worker.memories.expiry import end_forgotten
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


Send = Callable[[httpx.AsyncClient], Awaitable[httpx.Response]]


@pytest.mark.parametrize("group_by", [[], ["user_id"], ["memory_type"], ["namespace", "session_id"]])
@pytest.mark.parametrize(
    "delete",
    [
        lambda client: client.delete("/v1/long-term-memory?memory_ids=bees"),
        lambda client: client.delete("/v1/working-memory/s1?user_id=ana&namespace=home&memories=true"),
    ],
    ids=["memory", "session"],
)
async def test_deletion_by_a_caller_removes_the_text_from_views(rig: Rig, delete: Send, group_by: list[str]) -> None:
    transport = httpx.ASGITransport(create_app(rig.settings, rig.rt))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        common = {"user_id": "ana", "namespace": "home"}
        await rig.remember(
            record("Ana keeps bees", "bees", session_id="s1", **common),
            record("Ana plays chess", "chess", session_id="s2", memory_type="episodic", **common),
            record("Bob sails", "sails", session_id="s3", user_id="bob", namespace="work", memory_type="episodic"),
        )
        view = (await client.post(VIEWS, json={"source": "long_term", "group_by": group_by})).json()["id"]
        await client.post(f"{VIEWS}/{view}/run", json={})
        await rig.work(DueKind.ORDER)
        before = (await client.get(f"{VIEWS}/{view}/partitions")).json()
        assert "bees" in str(before)
        assert (await delete(client)).status_code == 200
        await rig.work(DueKind.DELETION)
        after = (await client.get(f"{VIEWS}/{view}/partitions")).json()
        assert "bees" not in str(after)
        if group_by != ["memory_type"]:  # A deleted session may have had memories of every type.
            assert after == [partition for partition in before if "bees" not in partition["summary"]]


async def test_deleted_file_is_in_no_view(rig: Rig) -> None:
    transport = httpx.ASGITransport(create_app(rig.settings, rig.rt))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        file = (await client.post("/v1/files?user_id=ana&name=v.md", content=b"The greenhouse code is 4711.")).json()["id"]
        await rig.work(DueKind.ORDER)
        view = (await client.post(VIEWS, json={"source": "long_term", "group_by": ["user_id"]})).json()["id"]
        summary = (await client.post(f"{VIEWS}/{view}/partitions/run", json={"group": {"user_id": "ana"}})).json()["summary"]
        assert "4711" in summary
        await client.delete(f"/v1/files/{file}?user_id=ana")
        assert (await client.get(f"{VIEWS}/{view}/partitions")).json() == []


async def test_erased_agent_is_in_no_view(rig: Rig) -> None:
    transport = httpx.ASGITransport(create_app(rig.settings, rig.rt))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        await rig.append("s", "I keep an okapi in my garage.", user_id="ana", agent_id="coach")
        await rig.work()
        view = (await client.post(VIEWS, json={"source": "long_term", "group_by": ["user_id"]})).json()["id"]
        summary = (await client.post(f"{VIEWS}/{view}/partitions/run", json={"group": {"user_id": "ana"}})).json()["summary"]
        assert "okapi" in summary
        assert (await client.delete("/v1/agents/coach")).status_code == 200
        await rig.work(DueKind.DELETION)
        assert (await client.get(f"{VIEWS}/{view}/partitions")).json() == []


async def test_deletion_by_a_caller_with_other_users_keeps_views(rig: Rig) -> None:
    await rig.remember(record("Ana keeps bees", "bees", user_id="ana"))
    one = await rig.rt[ViewService].create_view(SCOPE, CreateSummaryViewRequest(source="long_term", group_by=["user_id"]))
    await rig.rt[ViewService].run_partition(SCOPE, one.id, RunSummaryViewPartitionRequest(group={"user_id": "ana"}))
    other = replace(SCOPE, users=frozenset({"bob"}))
    await rig.rt[MemoryService].delete(other, ["bees"])
    assert len(await rig.rt[ViewService].read_partitions(SCOPE, one.id, {})) == 1


async def test_memory_whose_retention_undo_has_ended_is_in_no_view(rig: Rig) -> None:
    old = datetime.now(UTC) - timedelta(days=100)
    await rig.remember(record("Ana keeps bees", "bees", user_id="ana", created_at=old, last_accessed=old))
    one = await rig.rt[ViewService].create_view(SCOPE, CreateSummaryViewRequest(source="long_term", group_by=["user_id"]))
    await rig.rt[ViewService].run_partition(SCOPE, one.id, RunSummaryViewPartitionRequest(group={"user_id": "ana"}))
    await rig.rt[RetentionService].forget_by_policy(SCOPE, Policy(max_age_days=1), Selection(), limit=10, dry_run=False)
    for change in (await rig.rt[HistoryService].read_changes(SCOPE, {"kd": "forget"}, None, 0, 10)).changes:
        await rig.rt.client.hset(rig.keys.change(change.id), "at", str(old.timestamp()))
    assert await end_forgotten(rig.rt) == 1
    assert await rig.rt[ViewService].read_partitions(SCOPE, one.id, {}) == []
