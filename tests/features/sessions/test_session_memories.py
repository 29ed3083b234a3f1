"""Test that repeating a session's memory unchanged does not restore it after deletion.

Any change counts as a new write.
"""

from __future__ import annotations

from typing import Any

import pytest

from agent_memory.features.jobs.erasure_orders import Erasure, ErasureOrders
from agent_memory.features.memories.service import MemoryService
from agent_memory.features.sessions.service import SessionService
from agent_memory.foundation.core.scope import SessionRef
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory_client.models import UpdateWorkingMemory
from agent_memory_worker.privacy.erase import erase
from tests.support.rig import SCOPE, Rig

OWN: dict[str, Any] = {"id": "own", "text": "Ada likes figs"}


async def put(rig: Rig, *memories: dict[str, Any], session: str = "s", **more: Any) -> None:
    body = UpdateWorkingMemory.model_validate({"memories": memories, "user_id": "ada", **more})
    await rig.rt[SessionService].put(SCOPE, session, body)


async def read(rig: Rig, session: str = "s") -> dict[str, Any]:
    return (await rig.rt[SessionService].get(SCOPE, session, user_id="ada")).session.model_dump(mode="json")


async def remembered(rig: Rig) -> list[str]:
    return sorted(one.text for one in await rig.stored())


async def stored_and_deleted(rig: Rig) -> None:
    await put(rig, OWN)
    await rig.work()
    assert await remembered(rig) == ["Ada likes figs"]
    await rig.rt[MemoryService].delete(SCOPE, ["own"])


@pytest.mark.parametrize("more", [{}, {"context": "a summary"}, {"data": {"a": 1}}], ids=["same", "context", "data"])
async def test_repeated_put_of_session_memories_does_not_restore_a_deleted_one(rig: Rig, more: dict[str, Any]) -> None:
    await stored_and_deleted(rig)
    await put(rig, OWN, {"id": "new", "text": "and plums"}, **more)
    await rig.work()
    assert await remembered(rig) == ["and plums"]


@pytest.mark.parametrize("when", ["before it was stored", "afterwards"])
async def test_session_read_and_put_back_does_not_restore_a_deleted_memory(rig: Rig, when: str) -> None:
    """Archived clients read a session, add data, and send everything back."""
    await put(rig, OWN)
    copy = await read(rig) if when == "before it was stored" else {}
    await rig.work()
    await rig.rt[MemoryService].delete(SCOPE, ["own"])
    for _ in range(2):
        copy = copy or await read(rig)
        await rig.rt[SessionService].put(SCOPE, "s", UpdateWorkingMemory.model_validate(copy))
        await rig.work()
        copy = {}
    assert await remembered(rig) == []


async def test_persisted_at_is_kept_when_a_memory_is_put_again(rig: Rig) -> None:
    await put(rig, OWN)
    await rig.work()
    (before,) = (await read(rig))["memories"]
    await put(rig, OWN)
    (after,) = (await read(rig))["memories"]
    assert after["persisted_at"] == before["persisted_at"] is not None


@pytest.mark.parametrize("change", [{"text": "Ada likes plums"}, {"topics": ["food"]}, {"created_at": "2020-01-01T00:00:00Z"}], ids=str)
async def test_changed_memory_under_a_deleted_id_is_stored(rig: Rig, change: dict[str, Any]) -> None:
    await stored_and_deleted(rig)
    await put(rig, {**OWN, **change})
    await rig.work()
    assert await remembered(rig) == [{**OWN, **change}["text"]]
    (shown,) = (await read(rig))["memories"]
    assert shown["persisted_at"] is not None


async def test_deleted_memory_put_in_another_session_is_stored(rig: Rig) -> None:
    await stored_and_deleted(rig)
    await put(rig, OWN, session="t")
    await rig.work()
    assert await remembered(rig) == ["Ada likes figs"]


async def test_memory_removed_from_the_session_and_put_again_is_stored(rig: Rig) -> None:
    await stored_and_deleted(rig)
    await put(rig)
    await put(rig, OWN)
    await rig.work()
    assert await remembered(rig) == ["Ada likes figs"]


async def test_deletion_covers_pending_changes_but_not_later_ones(rig: Rig) -> None:
    await put(rig, OWN)
    await rig.work()
    await put(rig, {**OWN, "text": "Ada likes kiwis"})
    await rig.rt[MemoryService].delete(SCOPE, ["own"])
    await rig.work()
    assert await remembered(rig) == []
    await put(rig, {**OWN, "text": "Ada likes plums"})
    await rig.work()
    assert await remembered(rig) == ["Ada likes plums"]


async def test_erasure_discards_pending_session_memories(rig: Rig) -> None:
    await stored_and_deleted(rig)
    await put(rig, {**OWN, "text": "Ada likes plums"})
    name = (await rig.rt[ErasureOrders].order_erasure(SCOPE, Erasure(SCOPE.tenant, None, "ada", None))).member
    (claim,) = await rig.claim(DueKind.SESSION)
    await erase(rig.rt, name)
    await rig.make_due(DueKind.SESSION)
    assert claim.member == rig.sid(SessionRef("s", None, "ada"))
    await rig.work()
    assert await remembered(rig) == []
