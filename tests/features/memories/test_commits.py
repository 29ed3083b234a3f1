"""Test that commits of memory decisions are atomic and reject outdated reads."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from agent_memory.features.memories.commit import (
    Add,
    AddEvidence,
    ChangeOrigin,
    CommitOutcome,
    Decision,
    Forget,
    MemoryCommits,
    Merge,
    Supersede,
    Update,
)
from agent_memory.features.memories.records import StoredMemory
from agent_memory.features.memories.store import MemoryStore
from agent_memory_client.models import Evidence, MemoryRecord
from tests.support.rig import SCOPE, Rig, record

BY = ChangeOrigin("tests", "because")
MAY, JUNE = datetime(2024, 5, 1, tzinfo=UTC), datetime(2024, 6, 1, tzinfo=UTC)


async def commit(rig: Rig, *decisions: Decision, late: bool = False) -> CommitOutcome:
    return await rig.rt[MemoryCommits].commit(SCOPE, decisions, BY, background=late)


async def found(rig: Rig, memory_id: str) -> StoredMemory:
    (one,) = await rig.rt[MemoryStore].find(SCOPE, [memory_id])
    assert one is not None
    return one


def home(text: str, memory_id: str, since: datetime = MAY, **more: object) -> MemoryRecord:
    return record(text, memory_id, user_id="ada", slot="home_city", created_at=since, valid_from=since, **more)


async def versions(rig: Rig, memory_id: str) -> list[str]:
    mid = rig.rt[MemoryStore].mid(SCOPE, memory_id)
    return sorted(key.removeprefix(f"h:{mid}.") for key in await rig.raw_keys() if key.startswith(f"h:{mid}."))


async def test_a_superseded_fact_ends_when_the_new_one_begins(rig: Rig) -> None:
    assert (await commit(rig, Add(home("Ada lives in Turin", "turin")))).states == ["new"]
    await rig.index()
    old = await found(rig, "turin")
    done = await commit(rig, Supersede([old], home("Ada lives in Oslo", "oslo", JUNE)))
    assert done.done
    assert done.changes[0]
    turin, oslo = await found(rig, "turin"), await found(rig, "oslo")
    assert (turin.record.valid_to, turin.record.superseded_by, turin.record.text) == (JUNE, "oslo", "Ada lives in Turin")
    assert (oslo.record.valid_from, oslo.record.supersedes, oslo.record.valid_to) == (JUNE, ["turin"], None)
    assert [one.id for one in await rig.stored()] == ["oslo"], "what is over is not where default reads look"
    assert await versions(rig, "turin") == [str(old.version)]


async def test_commit_changes_nothing_if_a_memory_changed_meanwhile(rig: Rig) -> None:
    await commit(rig, Add(home("Ada lives in Turin", "turin")), Add(record("Ada likes tea", "tea")))
    turin, tea = await found(rig, "turin"), await found(rig, "tea")
    await rig.rt[MemoryStore].write(SCOPE, [record("Ada likes mint tea", "tea")])
    before = await rig.raw_keys()
    decisions = [Supersede([turin], home("Ada lives in Oslo", "oslo", JUNE)), Update(tea, record("Ada likes green tea", "tea"))]
    assert (await commit(rig, *decisions)).moved
    assert await rig.raw_keys() == before, "all or nothing"


async def test_commit_refuses_a_second_fact_with_the_same_slot_or_words(rig: Rig) -> None:
    await commit(rig, Add(home("Ada lives in Turin", "turin")))
    assert (await commit(rig, Add(home("Ada lives in Oslo", "oslo")))).moved
    assert (await commit(rig, Add(record("ada lives in turin.", "again", user_id="ada")))).moved
    assert (await commit(rig, Add(record("Ada lives in Turin", "theirs", user_id="bob")))).states == ["new"]


async def test_repeated_fact_adds_evidence_and_an_alias_once(rig: Rig) -> None:
    await commit(rig, Add(record("Ada likes tea", "tea")))
    again = AddEvidence(await found(rig, "tea"), Evidence(session_id="s", message_ids=["m1"]), record("ada likes tea", "again"))
    assert (await commit(rig, again)).states == ["done"]
    assert (await found(rig, "again")).record.id == "tea"
    assert len(await rig.stored()) == 1
    mid = rig.rt[MemoryStore].mid(SCOPE, "tea")
    assert await rig.rt.client.hlen(rig.keys.evidence(mid)) == 1
    await commit(rig, again)
    assert await rig.rt.client.hlen(rig.keys.evidence(mid)) == 1, "done twice it is the same evidence"


async def test_deletion_leaves_no_version_evidence_alias_or_change(rig: Rig) -> None:
    before = await rig.raw_keys()
    await commit(rig, Add(record("Ada likes tea", "tea")), Add(record("Ada likes teas", "teas")), Add(home("Ada lives in Turin", "turin")))
    await commit(rig, AddEvidence(await found(rig, "tea"), Evidence(session_id="s"), record("ada likes tea", "again")))
    await commit(rig, Update(await found(rig, "tea"), record("Ada likes green tea", "tea")))
    tea, teas = await found(rig, "tea"), await found(rig, "teas")
    await commit(rig, Merge(tea, tea.record, [teas]))
    await commit(rig, Supersede([await found(rig, "turin")], home("Ada lives in Oslo", "oslo", JUNE)))
    for name in ("again", "turin", "oslo"):
        assert await rig.rt[MemoryStore].delete_records(SCOPE, [(await found(rig, name)).record]) == 1
    left = await rig.raw_keys() - before
    assert {key.split(":")[0] for key in left} <= {"mt", "due", "wake", "bare"}, left
    late = await rig.rt[MemoryStore].write(SCOPE, [record("Ada likes teas", "teas")], background=True)
    assert late == ["buried"], "a merged memory is deleted with the one that it was merged into"


async def test_pinned_memories_and_events_are_never_changed_in_the_background(rig: Rig) -> None:
    await commit(rig, Add(home("Ada lives in Turin", "turin", pinned=True)), Add(record("Ada met Bob", "met", memory_type="episodic")))
    for decision in (
        Supersede([await found(rig, "turin")], home("Ada lives in Oslo", "oslo")),
        Update(await found(rig, "turin"), record("Ada lives in Rome", "turin")),
        Forget(await found(rig, "turin")),
        Supersede([await found(rig, "met")], record("Ada met Eve", "eve", memory_type="episodic")),
    ):
        with pytest.raises(ValueError, match=r"must not change pinned|never superseded"):
            await commit(rig, decision, late=True)
