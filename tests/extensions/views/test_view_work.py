"""Test computing, running and refreshing summary view partitions, with and without a model."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agent_memory.extensions.views.service import ViewService
from agent_memory.extensions.views.summaries import ViewSummarizer
from agent_memory.features.jobs.erasure_orders import Erasure, ErasureOrders
from agent_memory.features.memories.store import MemoryStore
from agent_memory.features.memories.upkeep.scan import MemoryScan
from agent_memory.features.privacy.forget.service import ForgetService
from agent_memory.foundation.api.principals import scope_of_work
from agent_memory.foundation.core.errors import AgentMemoryError, BadInput, NotFound, UnsupportedRequest
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.foundation.llm.openai.chat import OpenAIChat
from agent_memory.foundation.storage import connection
from agent_memory_client.models import (
    CreateSummaryViewRequest,
    ForgetMemoryRequest,
    RunSummaryViewPartitionRequest,
    RunSummaryViewRequest,
    SummaryView,
    SummaryViewPartitionResult,
    Task,
)
from agent_memory_worker.views import order_refreshes
from tests.support.lookalike import Lookalike
from tests.support.rig import SCOPE, MakeRig, Rig, record


async def view(rig: Rig, **given: Any) -> SummaryView:
    return await rig.rt[ViewService].create_view(SCOPE, CreateSummaryViewRequest(**{"source": "long_term", **given}))


async def run_group(rig: Rig, one: SummaryView, **group: str) -> SummaryViewPartitionResult:
    return await rig.rt[ViewService].run_partition(SCOPE, one.id, RunSummaryViewPartitionRequest(group=group))


async def run(rig: Rig, one: SummaryView, task_id: str | None = None) -> Task:
    task = await rig.rt[ViewService].run_all_partitions(SCOPE, one.id, RunSummaryViewRequest(task_id=task_id))
    await rig.work(DueKind.ORDER)
    return await rig.rt[ViewService].read_task(SCOPE, task.id)


async def listed(rig: Rig, one: SummaryView, **wanted: str) -> list[tuple[dict[str, str], int]]:
    return [(found.group, found.memory_count) for found in await rig.rt[ViewService].read_partitions(SCOPE, one.id, wanted)]


async def two_users(rig: Rig) -> None:
    await rig.remember(
        record("Ada likes green tea", "a1", user_id="ada", namespace="home"),
        record("Ada plays the violin", "a2", user_id="ada", namespace="work", topics=["Music"]),
        record("Bob repairs old radios", "b1", user_id="bob", namespace="home", memory_type="episodic"),
        record("Nobody's note", "n1", namespace="home"),
    )


async def test_each_group_has_a_partition_and_memories_without_the_field_none(rig: Rig) -> None:
    await two_users(rig)
    by_user = await view(rig, group_by=["user_id"])
    done = await run(rig, by_user)
    assert (done.status, done.error_message, done.view_id) == ("success", None, by_user.id)
    assert done.started_at is not None
    assert done.completed_at is not None
    assert await listed(rig, by_user) == [({"user_id": "ada"}, 2), ({"user_id": "bob"}, 1)]
    by_both = await view(rig, group_by=["namespace", "user_id"])
    await run(rig, by_both)
    assert await listed(rig, by_both, user_id="ada") == [
        ({"namespace": "home", "user_id": "ada"}, 1),
        ({"namespace": "work", "user_id": "ada"}, 1),
    ]
    assert await listed(rig, by_both, namespace="home", user_id="bob") == [({"namespace": "home", "user_id": "bob"}, 1)]
    whole = await view(rig)
    await run(rig, whole)
    assert await listed(rig, whole) == [({}, 4)]


@pytest.mark.parametrize(
    ("filters", "count"),
    [
        ({"user_id": "ada"}, 2),
        ({"user_id": {"ne": "ada"}}, 2),
        ({"user_id": ["ada", "bob"]}, 3),
        ({"topics": ["music", "other"]}, 1),
        ({"memory_type": "episodic"}, 1),
        ({"memory_type": {"in_": ["episodic", "message"]}}, 1),
        ({"extraction_strategy": ["discrete"]}, 4),
        ({"namespace": {"startswith": "ho"}, "user_id": "ada"}, 1),
        ({"event_date": {"gte": "2020-01-01T00:00:00Z"}}, 0),
    ],
)
async def test_view_filters_select_memories(rig: Rig, filters: dict[str, Any], count: int) -> None:
    await two_users(rig)
    found = await run_group(rig, await view(rig, filters=filters))
    assert (found.memory_count, found.empty) == (count, count == 0)


async def test_group_excluded_by_the_view_filter_is_empty(rig: Rig) -> None:
    await two_users(rig)
    one = await view(rig, filters={"user_id": {"ne": "ada"}}, group_by=["user_id"])
    assert (await run_group(rig, one, user_id="ada")).memory_count == 0
    assert (await run_group(rig, one, user_id="bob")).memory_count == 1
    await run(rig, one)
    assert await listed(rig, one) == [({"user_id": "bob"}, 1)], "empty groups go with a full run"


async def test_time_window_excludes_older_memories(rig: Rig) -> None:
    await rig.remember(record("old", created_at=datetime.now(UTC) - timedelta(days=10)), record("new"))
    assert (await run_group(rig, await view(rig, time_window_days=7))).memory_count == 1
    assert (await run_group(rig, await view(rig, time_window_days=36_500))).memory_count == 2


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"source": "working_memory"}, UnsupportedRequest),
        ({"group_by": ["topics"]}, UnsupportedRequest),
        ({"group_by": ["user_id", "user_id"]}, UnsupportedRequest),
        ({"filters": {"text": "x"}}, UnsupportedRequest),
        ({"filters": {"memory_type": "nonsense"}}, BadInput),
        ({"filters": {"user_id": {}}}, BadInput),
        ({"filters": {"user_id": {"eq": ""}}}, BadInput),
        ({"filters": {"user_id": []}}, BadInput),
        ({"filters": {"user_id": {"field": "namespace", "eq": "x"}}}, BadInput),
        ({"filters": {"user_id": None}}, BadInput),
        ({"filters": {"event_date": "someday"}}, BadInput),
    ],
)
async def test_view_that_cannot_be_computed_is_rejected(rig: Rig, given: dict[str, Any], error: type[AgentMemoryError]) -> None:
    with pytest.raises(error) as raised:
        await view(rig, **given)
    assert raised.value.status in (400, 422)
    assert await rig.rt[ViewService].list_views(SCOPE) == []


async def test_a_group_must_have_the_view_s_fields(rig: Rig) -> None:
    one = await view(rig, group_by=["user_id"])
    for group in ({}, {"namespace": "n"}, {"user_id": "ada", "namespace": "n"}):
        with pytest.raises(UnsupportedRequest):
            await run_group(rig, one, **group)
    with pytest.raises(BadInput):
        await run_group(rig, one, user_id="")
    with pytest.raises(BadInput):
        await run_group(rig, await view(rig, group_by=["memory_type"]), memory_type="nonsense")


async def test_summary_without_a_model_quotes_memories_and_is_marked_degraded(rig: Rig) -> None:
    await two_users(rig)
    one = await view(rig, group_by=["user_id"])
    found = await run_group(rig, one, user_id="ada")
    assert "Ada likes green tea" in found.summary
    assert "Ada plays the violin" in found.summary
    assert found.degraded is not None
    empty = await run_group(rig, one, user_id="nobody")
    assert (empty.empty, empty.empty_reason, empty.summary, empty.memory_count) == (True, "no_matching_memories", "", 0)
    assert empty.degraded is None


async def test_without_a_model_a_large_partition_has_a_short_summary(rig: Rig) -> None:
    texts = [f"Note {n}: the weather in Turin was {'fine' if n % 2 else 'wet'} on day {n} of the journey" for n in range(300)]
    await rig.remember(*(record(text, f"m{n}") for n, text in enumerate(texts)))
    found = await run_group(rig, await view(rig))
    assert found.memory_count == 300
    assert 10 < rig.rt.counter.count(found.summary) <= 600
    await rig.rt[MemoryStore].write(SCOPE, [record(text, f"x{n}", namespace="new") for n, text in enumerate(texts)])
    fresh = await run_group(rig, await view(rig, filters={"namespace": "new"}))
    assert 10 < rig.rt.counter.count(fresh.summary) <= 600, "before they are embedded, too"


async def test_model_gets_instructions_as_system_and_memories_as_data(make_rig: MakeRig, chat: OpenAIChat, lookalike: Lookalike) -> None:
    async with make_rig(chat) as rig:
        await two_users(rig)
        one = await view(rig, group_by=["user_id"], prompt='Answer like {"a pirate"}', model_name="another-model")
        found = await run_group(rig, one, user_id="ada")
    (body,) = lookalike.bodies("chat")
    system, user = (message["content"] for message in body["messages"])
    assert body["model"] == "another-model"
    assert 'Answer like {"a pirate"}' in system
    assert "Ada likes green tea" not in system
    assert "Ada likes green tea" in user.split("<memories-")[1]
    assert "Bob" not in user
    assert found.summary.startswith("Summary:")
    assert found.degraded is None


@pytest.mark.parametrize("fault", ["503", "garbage", "refusal"])
async def test_failing_model_gives_a_degraded_summary(make_rig: MakeRig, chat: OpenAIChat, lookalike: Lookalike, fault: str) -> None:
    async with make_rig(chat) as rig:
        await two_users(rig)
        lookalike.set_fault(fault)
        found = await run_group(rig, await view(rig))
        assert "Ada plays the violin" in found.summary
        assert found.degraded is not None


async def test_slow_model_gives_a_degraded_summary_at_the_deadline(make_rig: MakeRig, chat: OpenAIChat, lookalike: Lookalike) -> None:
    async with make_rig(chat, SUMMARY_VIEW_RUN_SECONDS=0.2) as rig:
        await two_users(rig)
        lookalike.set_fault("timeout")
        assert (await run_group(rig, await view(rig))).degraded is not None


async def test_refresh_recomputes_only_changes_and_keeps_summaries_during_model_outage(
    make_rig: MakeRig, chat: OpenAIChat, lookalike: Lookalike
) -> None:
    async with make_rig(chat) as rig:
        await two_users(rig)
        one = await view(rig, group_by=["user_id"], continuous=True)
        await view(rig, group_by=["user_id"])

        async def refresh() -> int:
            before = lookalike.calls["chat"]
            assert await order_refreshes(rig.rt) == 1, "the other view is not continuous"
            await rig.work(DueKind.ORDER)
            return lookalike.calls["chat"] - before

        assert await refresh() == 2
        assert await refresh() == 0
        first = {found.group["user_id"]: found.summary for found in await rig.rt[ViewService].read_partitions(SCOPE, one.id, {})}
        await rig.remember(record("Ada sings", "a3", user_id="ada"))
        lookalike.set_fault("503")
        await refresh()
        lookalike.set_fault(None)
        found = {found.group["user_id"]: found for found in await rig.rt[ViewService].read_partitions(SCOPE, one.id, {})}
        assert (found["ada"].summary, found["ada"].degraded) == (first["ada"], None)


@pytest.mark.parametrize("refreshed", [False, True])
async def test_memory_forgotten_during_a_run_is_in_no_summary(rig: Rig, monkeypatch: pytest.MonkeyPatch, refreshed: bool) -> None:
    await two_users(rig)
    one = await view(rig, continuous=True)
    if refreshed:
        await run_group(rig, one)
    name = "compute_partition" if refreshed else "load_newest"
    kind: Any = ViewSummarizer if refreshed else MemoryScan
    real = getattr(kind, name)

    async def then_forget(*arguments: Any, **named: Any) -> Any:
        found = await real(*arguments, **named)
        monkeypatch.undo()
        await rig.rt[ForgetService].forget(SCOPE, ForgetMemoryRequest(ids=["a2"], user_id="ada"))
        return found

    monkeypatch.setattr(kind, name, then_forget)
    if refreshed:
        await order_refreshes(rig.rt)
        await rig.work(DueKind.ORDER)
    else:
        assert "violin" not in ((await run_group(rig, one)).summary or "")
    assert "violin" not in str(await rig.rt[ViewService].read_partitions(SCOPE, one.id, {}))


async def test_run_with_the_same_task_id_restarts_the_task(rig: Rig) -> None:
    await two_users(rig)
    one = await view(rig)
    first = await run(rig, one, "mine/1")
    again = await rig.rt[ViewService].run_all_partitions(SCOPE, one.id, RunSummaryViewRequest(task_id="mine/1"))
    assert (first.status, again.status, again.completed_at) == ("success", "pending", None)
    assert (await rig.rt[ViewService].read_task(SCOPE, "mine/1")).status == "pending"
    await rig.work(DueKind.ORDER)
    assert (await rig.rt[ViewService].read_task(SCOPE, "mine/1")).status == "success"
    assert 6 * 86400 < await rig.rt.client.ttl(rig.keys.task(SCOPE.tenant, "mine/1")) <= 7 * 86400


async def test_run_of_a_deleted_view_fails_without_leftovers(rig: Rig) -> None:
    await two_users(rig)
    one = await view(rig)
    task = await rig.rt[ViewService].run_all_partitions(SCOPE, one.id, RunSummaryViewRequest())
    await rig.rt[ViewService].delete_view(SCOPE, one.id)
    await rig.work(DueKind.ORDER)
    done = await rig.rt[ViewService].read_task(SCOPE, task.id)
    assert (done.status, done.error_message) == ("failed", "the view was deleted: create it again")
    assert not [key for key in await rig.raw_keys() if key.startswith("svp:")]


async def test_crashed_run_is_marked_failed_with_its_error(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    await two_users(rig)

    async def broken(*_: Any, **__: Any) -> Any:
        raise ValueError("a defect")

    monkeypatch.setattr(type(rig.rt[ViewSummarizer]), "compute_partition", broken)
    done = await run(rig, await view(rig))
    assert (done.status, done.error_message) == ("failed", "ValueError (see the worker's log)")


async def test_dead_lettered_task_is_marked_failed(rig: Rig) -> None:
    task = await rig.rt[ViewService].run_all_partitions(SCOPE, (await view(rig)).id, RunSummaryViewRequest())
    (member,) = await rig.marks(DueKind.ORDER)
    await rig.rt.client.zrem(rig.keys.due(DueKind.ORDER), member)
    await rig.rt.client.zadd(rig.keys.dead(DueKind.ORDER), {member: 1})
    assert (await rig.rt[ViewService].read_task(SCOPE, task.id)).status == "failed"


async def test_deleting_a_view_deletes_its_partitions(rig: Rig) -> None:
    await two_users(rig)
    one, other = await view(rig, group_by=["user_id"]), await view(rig)
    await run(rig, one)
    await run(rig, other)
    await rig.rt[ViewService].delete_view(SCOPE, one.id)
    assert len([key for key in await rig.raw_keys() if key.startswith("svp:")]) == 1
    with pytest.raises(NotFound):
        await rig.rt[ViewService].read_partitions(SCOPE, one.id, {})
    assert [found.id for found in await rig.rt[ViewService].list_views(SCOPE)] == [other.id]


@pytest.mark.parametrize(
    ("condition", "left"),
    [
        ("ada", None),
        (["ada", "bob"], {"any": ["bob"]}),
        ({"in_": ["ada"]}, None),
        ({"in_": ["bob", "ada"], "ne": "eve"}, {"in_": ["bob"], "ne": "eve"}),
        ({"ne": "ada"}, {}),
        ({"not_in": ["ada", "eve"]}, {"not_in": ["eve"]}),
        ({"startswith": "ada"}, None),
    ],
)
async def test_erasure_of_a_user_keeps_views_of_other_users(rig: Rig, condition: Any, left: Any) -> None:
    await two_users(rig)
    one = await view(rig, group_by=["namespace"], filters={"user_id": condition, "memory_type": "semantic"})
    await run_group(rig, one, namespace="home")
    await rig.rt[ErasureOrders].order_erasure(SCOPE, Erasure(SCOPE.tenant, None, "ada", None))
    await rig.work(DueKind.DELETION)
    views = await rig.rt[ViewService].list_views(SCOPE)
    expected = {"memory_type": "semantic"} | ({"user_id": left} if left else {})
    assert [view.filters for view in views] == ([] if left is None else [expected])
    if left is not None:
        assert await listed(rig, one) == [], "the summary may have told of the erased user"


async def test_tenants_do_not_see_each_other_s_views_and_memories(rig: Rig) -> None:
    await two_users(rig)
    stranger = scope_of_work("another tenant")
    mine = await view(rig)
    assert (await run(rig, mine, "t1")).status == "success"
    assert await rig.rt[ViewService].list_views(stranger) == []
    for ask in (rig.rt[ViewService].get_view(stranger, mine.id), rig.rt[ViewService].read_task(stranger, "t1")):
        with pytest.raises(NotFound):
            await ask
    theirs = await rig.rt[ViewService].create_view(stranger, CreateSummaryViewRequest(source="long_term"))
    found = await rig.rt[ViewService].run_partition(stranger, theirs.id, RunSummaryViewPartitionRequest(group={}))
    assert found.memory_count == 0
    await rig.rt[ViewService].delete_view(stranger, mine.id)
    assert (await rig.rt[ViewService].get_view(SCOPE, mine.id)).id == mine.id


async def test_listing_views_takes_one_command(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    for n in range(20):
        await view(rig, name=f"v{n}")
    commands: list[str] = []
    exchange = connection.exchange

    async def counted(client: Any, asked: Any) -> Any:
        if client is rig.rt.client:
            commands.extend(command[0] for command in asked)
        return await exchange(client, asked)

    monkeypatch.setattr(connection, "exchange", counted)
    assert [one.name for one in await rig.rt[ViewService].list_views(SCOPE)] == [f"v{n}" for n in range(20)]
    assert commands == ["HVALS"]
