"""Test that reading a profile takes one round trip, however many facts there are."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from agent_memory.extensions.profile.service import ProfileService
from agent_memory.extensions.profile.store import MOST_SHOWN, ProfileKeys, ProfileOwner, ProfileStore
from agent_memory.features.memories.service import MemoryService
from agent_memory.features.memories.store import MemoryStore
from agent_memory.features.privacy.forget.service import ForgetService
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory_client.models import EditMemoryRecordRequest, ForgetMemoryRequest
from tests.support.commands import commands_of
from tests.support.rig import SCOPE, MakeRig, Rig, record

NOW = datetime.now(UTC)


async def facts(rig: Rig, user: str, count: int) -> None:
    records = [
        record(f"{user} knows street {number}", f"{user}-{number}", user_id=user, created_at=NOW - timedelta(minutes=number))
        for number in range(count)
    ]
    await rig.rt[MemoryStore].write(SCOPE, records)
    await rig.make_due(DueKind.FOLLOW)
    await rig.work(DueKind.FOLLOW)


async def test_a_profile_is_read_in_one_round_trip(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    await facts(rig, "ada", 3)
    sent = commands_of(rig, monkeypatch)
    profile = await rig.rt[ProfileService].read(SCOPE, "ada", None)
    assert len(profile.dynamic) == 3
    assert len(sent) == 1


async def test_read_size_is_independent_of_the_number_of_facts(make_rig: MakeRig) -> None:
    async with make_rig() as rig:
        read: dict[str, int] = {}
        for user, count in (("few", 70), ("many", 300)):
            await facts(rig, user, count)
            owner = ProfileOwner(SCOPE.tenant, None, user)
            pages, _ = await rig.rt[ProfileStore].read_profile(owner, MOST_SHOWN)
            assert len(pages.dynamic) == MOST_SHOWN
            assert pages.dynamic[0][1]["id"] == f"{user}-0", "the latest first"
            read[user] = sum(len(value) for value in await rig.rt.client.hvals(f"{ProfileKeys(rig.keys.root).profile(owner.name)}:r"))
        assert abs(read["many"] - read["few"]) < 0.05 * read["few"], "as much is read of many as of few"


async def test_the_shortest_limit_reads_one_page(rig: Rig) -> None:
    await facts(rig, "ada", 40)
    assert len((await rig.rt[ProfileService].read(SCOPE, "ada", None, limit=5)).dynamic) == 5
    assert len((await rig.rt[ProfileService].read(SCOPE, "ada", None, limit=40)).dynamic) == 40


async def test_line_that_several_documents_repeat_is_shown_once(rig: Rig) -> None:
    said = [
        record(
            text, f"{day}", user_id="ada", created_at=NOW - timedelta(days=day), metadata={"date": str((NOW - timedelta(days=day)).date())}
        )
        for day, text in enumerate(["I eat oatmeal for breakfast.", "i eat oatmeal for breakfast", "I eat oatmeal for breakfast."])
    ]
    await rig.rt[MemoryStore].write(SCOPE, [*said, record("I like tea", "tea", user_id="ada")])
    await rig.make_due(DueKind.FOLLOW)
    await rig.work(DueKind.FOLLOW)
    profile = await rig.rt[ProfileService].read(SCOPE, "ada", None)
    texts = [entry.text.casefold().strip(".") for entry in (*profile.static, *profile.dynamic)]
    assert sorted(texts) == ["i eat oatmeal for breakfast", "i like tea"]


async def test_deleted_memories_leave_the_profile_without_a_worker(rig: Rig) -> None:
    await facts(rig, "ada", 4)
    memories, profiles = rig.rt[MemoryService], rig.rt[ProfileService]

    async def shown() -> set[str]:
        return {entry.text for entry in (await profiles.read(SCOPE, "ada", None)).dynamic}

    await memories.delete(SCOPE, ["ada-0"])
    assert await shown() == {f"ada knows street {number}" for number in (1, 2, 3)}
    await memories.patch(SCOPE, "ada-1", EditMemoryRecordRequest(text="ada knows the harbour"))
    await rig.rt[ForgetService].forget(SCOPE, ForgetMemoryRequest(ids=["ada-2"], user_id="ada"))
    assert await shown() == {"ada knows the harbour", "ada knows street 3"}
    assert await rig.marks(DueKind.FOLLOW), "a worker does it again"
