"""Test which memories a retention policy selects, and that the scan covers every page."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_memory.features.memories.commit import MemoryCommits
from agent_memory.features.memories.retention.service import (
    Choice,
    Policy,
    RetentionService,
    narrow_selection,
    outdated,
    parse_policy,
    recency,
)
from agent_memory.features.memories.store import MemoryStore
from agent_memory.features.memories.upkeep.scan import MemoryScan, Selection, StoredMemory
from agent_memory.foundation.core.errors import BadInput
from agent_memory_client.models import ForgetResponse, MemoryRecord
from tests.support.rig import SCOPE, Rig, record

NOW = datetime(2025, 6, 1, 12, tzinfo=UTC)


def aged(name: str, age: float, idle: float | None = None, **more: Any) -> MemoryRecord:
    """Return a memory that is `age` days old and was last read `idle` days ago."""
    read = NOW - timedelta(days=age if idle is None else idle)
    return record(name, created_at=NOW - timedelta(days=age), last_accessed=read, **more)


def gone(policy: Policy, *records: MemoryRecord, limit: int = 1000, excluded_ids: frozenset[str] = frozenset()) -> list[str]:
    choice = Choice(policy, NOW, limit, excluded_ids)
    for place, one in enumerate(records):
        choice.look(StoredMemory(f"{place:032x}", 1, one))
    return [found.record.id for found in choice.chosen()]


def test_policy_with_one_bound_forgets_memories_beyond_it() -> None:
    records = [aged("old", 40, 1), aged("idle", 5, 5), aged("fresh", 1, 0)]
    assert gone(Policy(max_age_days=30), *records) == ["old"]
    assert gone(Policy(max_inactive_days=3), *records) == ["idle"]
    assert gone(Policy(), *records) == []


def test_with_both_bounds_a_memory_must_exceed_both_or_be_very_old() -> None:
    records = [aged("old and read", 40, 1), aged("old and idle", 40, 20), aged("very old and read", 361, 0), aged("idle", 20, 20)]
    both = Policy(max_age_days=30, max_inactive_days=7)
    assert gone(both, *records) == ["old and idle", "very old and read"]
    assert gone(Policy(max_age_days=30, max_inactive_days=7, hard_age_multiplier=100), *records) == ["old and idle"]


def test_pinned_and_exempted_memories_are_never_forgotten() -> None:
    records = [aged("pinned", 400, pinned=True), aged("spared", 400), aged("old", 400)]
    for policy in (Policy(max_age_days=1), Policy(budget=0)):
        assert gone(policy, *records, excluded_ids=frozenset({"spared"})) == ["old"]


def test_only_allowed_memory_types_are_forgotten() -> None:
    records = [aged("a", 400), aged("b", 400, memory_type="episodic")]
    assert gone(Policy(max_age_days=1, types=frozenset({"episodic"})), *records) == ["b"]
    assert gone(Policy(budget=0, types=frozenset({"episodic"})), *records) == ["b"], "the budget is for those types alone, too"


def test_budget_forgets_the_least_recent_memories_first() -> None:
    records = [aged(f"{days}", days) for days in (3, 9, 1, 27, 81)]
    assert gone(Policy(budget=2), *records) == ["81", "27", "9"], "the stalest go first"
    assert gone(Policy(budget=2), *records, limit=2) == ["81", "27"]
    assert gone(Policy(budget=2, max_age_days=50), *records) == ["81", "27", "9"], "what is past its age does not count as kept"
    assert gone(Policy(budget=9), *records) == []


def test_recency_score_follows_the_contract() -> None:
    assert recency(aged("new", 0), NOW) == pytest.approx(1.0)
    assert recency(aged("x", 30, 7), NOW) == pytest.approx(0.6 * 0.5 + 0.4 * 0.5)
    assert recency(aged("future", -5), NOW) == pytest.approx(1.0)


@given(
    st.lists(st.tuples(st.floats(0, 500), st.floats(0, 500), st.booleans()), max_size=40),
    st.none() | st.floats(0, 400),
    st.none() | st.floats(0, 400),
    st.none() | st.integers(0, 20),
    st.integers(0, 20),
)
def test_repeated_limited_calls_delete_the_same_memories_as_one(
    ages: list[tuple[float, float, bool]], age: float | None, idle: float | None, budget: int | None, limit: int
) -> None:
    policy = Policy(age, idle, budget)
    records = [aged(f"m{n}", made, min(read, made), pinned=pin) for n, (made, read, pin) in enumerate(ages)]
    wanted = set(gone(policy, *records))
    first = gone(policy, *records, limit=limit)
    assert len(first) == min(limit, len(wanted))
    left = records
    while limit and (some := gone(policy, *left, limit=limit)):
        left = [one for one in left if one.id not in some]
    if limit:
        assert {one.id for one in records} - {one.id for one in left} == wanted
    kept = [one for one in records if one.id not in wanted and not one.pinned]
    assert not any(outdated(policy, one, NOW) for one in kept)
    assert budget is None or len(kept) <= budget


@pytest.mark.parametrize(
    ("raw", "policy"),
    [
        ({}, Policy()),
        ({"max_age_days": 30, "max_inactive_days": 7.5, "budget": 5}, Policy(30, 7.5, 5)),
        ({"max_age_days": "soon", "max_inactive_days": True, "budget": "all", "unknown": 1}, Policy()),
        ({"max_age_days": None, "hard_age_multiplier": 3}, Policy(hard_age_multiplier=3)),
        ({"memory_type_allowlist": ["message"]}, Policy(types=frozenset({"message"}))),
        ({"max_age_days": 1e308}, Policy(max_age_days=1e308)),
    ],
)
def test_policy_is_parsed_leniently(raw: dict[str, Any], policy: Policy) -> None:
    assert parse_policy(raw) == policy
    narrow_selection(Selection(), policy, NOW)


@pytest.mark.parametrize(
    "raw",
    [
        {"max_age_days": -1},
        {"max_inactive_days": -0.1},
        {"budget": -1},
        {"hard_age_multiplier": -2},
        {"memory_type_allowlist": "message"},
        {"memory_type_allowlist": [1]},
    ],
)
def test_policy_with_negative_or_mistyped_bounds_is_refused(raw: dict[str, Any]) -> None:
    with pytest.raises(BadInput) as raised:
        parse_policy({"max_age_days": 30, **raw})
    assert raised.value.field == f"policy.{next(iter(raw))}"


async def forget(rig: Rig, policy: dict[str, Any], *, limit: int = 1000, dry_run: bool = False, **more: Any) -> ForgetResponse:
    excluded_ids, selection = frozenset(more.pop("pinned_ids", ())), Selection.of(more.get("namespace"), more.get("user_id"))
    return await rig.rt[RetentionService].forget_by_policy(
        SCOPE, parse_policy(policy), selection, excluded_ids=excluded_ids, limit=limit, dry_run=dry_run
    )


def days_ago(days: float) -> datetime:
    return datetime.now(UTC) - timedelta(days=days)


async def test_forgetting_scans_more_than_a_thousand_memories(rig: Rig) -> None:
    same_day = days_ago(100)
    records = [record(f"m{n}", created_at=same_day if n % 2 else days_ago(50 + n / 100)) for n in range(2600)]
    await rig.rt[MemoryStore].write(SCOPE, records)

    answer = await forget(rig, {"max_age_days": 99}, limit=5000)
    assert (answer.scanned, answer.deleted) == (2600, 1300)
    assert {one.id for one in await rig.stored()} == {f"m{n}" for n in range(0, 2600, 2)}


async def test_walk_visits_each_memory_once_if_all_share_one_timestamp(rig: Rig) -> None:
    await rig.rt[MemoryStore].write(SCOPE, [record(f"m{n}", created_at=days_ago(1) if n == 7 else NOW) for n in range(1700)])
    for by in ("created", "changed"):
        seen = [found.record.id async for page in rig.rt[MemoryScan].walk_memories(SCOPE, Selection(), by=by) for found in page]
        assert sorted(seen) == sorted(f"m{n}" for n in range(1700))


async def test_dry_run_lists_what_it_would_delete_and_deletes_nothing(rig: Rig) -> None:
    await rig.rt[MemoryStore].write(SCOPE, [record("old", created_at=days_ago(50)), record("new")])
    dry = await forget(rig, {"max_age_days": 30}, dry_run=True)
    assert dry == ForgetResponse(scanned=2, deleted=1, deleted_ids=["old"], dry_run=True)
    assert len(await rig.stored()) == 2
    wet = await forget(rig, {"max_age_days": 30})
    assert wet == ForgetResponse(scanned=2, deleted=1, deleted_ids=["old"], dry_run=False)
    assert await forget(rig, {"max_age_days": 30}) == ForgetResponse(scanned=1, deleted=0, deleted_ids=[], dry_run=False)


async def test_limit_deletes_the_oldest_first_and_leaves_the_rest(rig: Rig) -> None:
    await rig.rt[MemoryStore].write(SCOPE, [record(f"m{n}", created_at=days_ago(50 + n)) for n in range(5)])
    assert (await forget(rig, {"max_age_days": 30}, limit=2)).deleted_ids == ["m4", "m3"], "the oldest first"
    assert (await forget(rig, {"max_age_days": 30}, limit=0)).deleted == 0
    assert (await forget(rig, {"max_age_days": 30})).deleted_ids == ["m2", "m1", "m0"]


async def test_forgetting_scans_only_its_selection(rig: Rig) -> None:
    old = days_ago(50)
    await rig.rt[MemoryStore].write(
        SCOPE, [record("a", namespace="n", created_at=old), record("b", namespace="m", created_at=old), record("c", created_at=old)]
    )
    answer = await forget(rig, {"max_age_days": 1}, namespace="n")
    assert (answer.scanned, answer.deleted_ids) == (1, ["a"])


async def test_memory_pinned_during_a_pass_is_not_forgotten(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    await rig.rt[MemoryStore].write(SCOPE, [record("a", created_at=days_ago(50)), record("b", created_at=days_ago(50))])
    forget_them = rig.rt[MemoryCommits].forget_memories

    async def pinned_before(_: Any, *arguments: Any, **more: Any) -> Any:
        await rig.rt[MemoryStore].write(SCOPE, [record("a", created_at=days_ago(50), pinned=True)])
        return await forget_them(*arguments, **more)

    monkeypatch.setattr(type(rig.rt[MemoryCommits]), "forget_memories", pinned_before)
    answer = await forget(rig, {"max_age_days": 30})
    assert (answer.deleted, answer.deleted_ids) == (1, ["b"])


async def test_forgotten_memory_is_not_restored_by_background_work(rig: Rig) -> None:
    one = record("a", created_at=days_ago(50))
    await rig.rt[MemoryStore].write(SCOPE, [one])
    await forget(rig, {"max_age_days": 30})
    assert await rig.rt[MemoryStore].write(SCOPE, [one], background=True) == ["buried"]
