"""Test concurrent edits and deletions of one memory, and replacements of one session."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agent_memory.features.memories.service import MemoryService
from agent_memory.features.sessions.service import SessionService
from agent_memory.foundation.core.errors import NotFound, VersionMismatch
from agent_memory_client.models import EditMemoryRecordRequest, MemoryMessage, UpdateWorkingMemory
from tests.support.rig import SCOPE, Rig, gathered, record
from tests.system.faults.pictures import finished

pytestmark = pytest.mark.slow


async def test_concurrent_edits_of_different_fields_are_all_applied(rig: Rig) -> None:
    for round_ in range(10):
        name = f"m{round_}"
        await rig.rt[MemoryService].store(SCOPE, [record("Ana sails", name)])
        edits: list[dict[str, Any]] = [{"text": f"Ana rows {round_}"}, {"topics": ["boats"]}, {"entities": ["Ana"]}, {"user_id": "ana"}]
        await gathered(rig.rt[MemoryService].patch(SCOPE, name, EditMemoryRecordRequest(**edit)) for edit in edits)
        stored = await rig.rt[MemoryService].get(SCOPE, name)
        assert (stored.text, stored.topics, stored.entities, stored.user_id) == (f"Ana rows {round_}", ["boats"], ["Ana"], "ana")


async def test_concurrent_edit_never_restores_a_deleted_memory(rig: Rig) -> None:
    async def edit(name: str, number: int) -> None:
        try:
            await rig.rt[MemoryService].patch(SCOPE, name, EditMemoryRecordRequest(text=f"edit {number}"))
        except NotFound:
            return

    for round_ in range(20):
        name = f"d{round_}"
        await rig.rt[MemoryService].store(SCOPE, [record("Ben climbs", name)])
        work = [edit(name, number) for number in range(4)]
        work.insert(round_ % 5, rig.rt[MemoryService].delete(SCOPE, [name]))  # type: ignore[arg-type]
        await gathered(work)
    await finished(rig)
    assert await rig.stored() == []
    assert not [key for key in await rig.raw_keys() if key.startswith(("m:", "v:"))]


async def test_exactly_one_concurrent_put_with_the_same_version_succeeds(rig: Rig) -> None:
    await rig.append("s", "first")
    taken: list[int] = []

    async def replace(number: int) -> None:
        body = UpdateWorkingMemory(messages=[MemoryMessage(role="user", content=f"writer {number}", id=f"w{number}")])
        try:
            await rig.rt[SessionService].put(SCOPE, "s", body, if_match="1")
        except VersionMismatch:
            return
        taken.append(number)

    await asyncio.gather(*(replace(number) for number in range(20)))
    assert len(taken) == 1
    assert await rig.contents("s") == [f"writer {taken[0]}"]


async def test_concurrent_data_patches_keep_every_key(rig: Rig) -> None:
    await rig.append("s", "first")
    await gathered(rig.rt[SessionService].patch_data(SCOPE, "s", {f"k{number}": number}) for number in range(30))
    assert (await rig.rt[SessionService].get(SCOPE, "s")).session.data == {f"k{number}": number for number in range(30)}
