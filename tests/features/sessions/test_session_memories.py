"""Memories that a session holds: what is sent again unchanged is no new write, so what was deleted stays deleted; anything else is one."""

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
async def test_the_whole_list_again_brings_nothing_back(rig: Rig, more: dict[str, Any]) -> None:
    await stored_and_deleted(rig)
    await put(rig, OWN, {"id": "new", "text": "and plums"}, **more)
    await rig.work()
    assert await remembered(rig) == ["and plums"]


@pytest.mark.parametrize("when", ["before it was stored", "afterwards"])
async def test_what_a_client_read_and_sends_again_brings_nothing_back(rig: Rig, when: str) -> None:
    """Archived clients read a session, add something, and send all of it."""
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


async def test_a_session_says_still_that_it_was_stored_when_it_is_sent_again(rig: Rig) -> None:
    await put(rig, OWN)
    await rig.work()
    (before,) = (await read(rig))["memories"]
    await put(rig, OWN)
    (after,) = (await read(rig))["memories"]
    assert after["persisted_at"] == before["persisted_at"] is not None


@pytest.mark.parametrize("change", [{"text": "Ada likes plums"}, {"topics": ["food"]}, {"created_at": "2020-01-01T00:00:00Z"}], ids=str)
async def test_another_text_under_the_id_is_stored(rig: Rig, change: dict[str, Any]) -> None:
    await stored_and_deleted(rig)
    await put(rig, {**OWN, **change})
    await rig.work()
    assert await remembered(rig) == [{**OWN, **change}["text"]]
    (shown,) = (await read(rig))["memories"]
    assert shown["persisted_at"] is not None


async def test_another_session_stores_it(rig: Rig) -> None:
    await stored_and_deleted(rig)
    await put(rig, OWN, session="t")
    await rig.work()
    assert await remembered(rig) == ["Ada likes figs"]


async def test_what_the_session_did_not_hold_any_more_is_stored(rig: Rig) -> None:
    await stored_and_deleted(rig)
    await put(rig)
    await put(rig, OWN)
    await rig.work()
    assert await remembered(rig) == ["Ada likes figs"]


async def test_a_deletion_counts_for_all_that_was_written_before_it(rig: Rig) -> None:
    await put(rig, OWN)
    await rig.work()
    await put(rig, {**OWN, "text": "Ada likes kiwis"})
    await rig.rt[MemoryService].delete(SCOPE, ["own"])
    await rig.work()
    assert await remembered(rig) == []
    await put(rig, {**OWN, "text": "Ada likes plums"})
    await rig.work()
    assert await remembered(rig) == ["Ada likes plums"]


async def test_nothing_comes_back_after_an_erasure(rig: Rig) -> None:
    await stored_and_deleted(rig)
    await put(rig, {**OWN, "text": "Ada likes plums"})
    name = (await rig.rt[ErasureOrders].order_erasure(SCOPE, Erasure(SCOPE.tenant, None, "ada", None))).member
    (claim,) = await rig.claim(DueKind.SESSION)
    await erase(rig.rt, name)
    await rig.make_due(DueKind.SESSION)
    assert claim.member == rig.sid(SessionRef("s", None, "ada"))
    await rig.work()
    assert await remembered(rig) == []
