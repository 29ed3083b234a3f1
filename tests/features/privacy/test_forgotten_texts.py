"""Test who can read forgotten data.

Callers who may undo it can read it until the undo expires, and can read the restored data
afterward.
"""

from __future__ import annotations

import pytest

from agent_memory.features.jobs.erasure_orders import Erasure, ErasureOrders
from agent_memory.features.memories.commit import MemoryCommits, Update
from agent_memory.features.memories.service import MemoryService
from agent_memory.features.memories.store import MemoryStore
from agent_memory.features.privacy.forget.service import ForgetService
from agent_memory.foundation.core.errors import ErasureUnderWay, NotFound
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory_client.models import ForgettingResponse
from tests.features.privacy.test_forget import BY, add, everything, forget, peanuts
from tests.support.rig import SCOPE, Rig, record

SAID = "I am allergic to peanuts. I work at Acme."
DELETED = [("fact", "User has a peanut allergy"), ("message", SAID), ("session_message", SAID)]


async def show(rig: Rig, receipt: str | None) -> ForgettingResponse:
    assert receipt is not None
    return await rig.rt[ForgetService].show(SCOPE, receipt)


def texts_of(shown: ForgettingResponse) -> list[tuple[str, str]]:
    return [(item.kind, item.text) for item in shown.items]


async def test_forgotten_data_is_shown_until_its_undo_and_then_what_came_back(rig: Rig) -> None:
    await peanuts(rig)
    gone = await forget(rig, "I am allergic to peanuts")
    before = await everything(rig)
    kept = await show(rig, gone.receipt_id)
    assert await everything(rig) == before, "reading changes nothing"
    assert (kept.state, kept.user_id, kept.undo_until) == ("applied", "ana", gone.undo_until)
    assert texts_of(kept) == DELETED
    assert {(item.user_id, item.session_id) for item in kept.items[1:]} == {("ana", "s")}
    assert all(item.created_at for item in kept.items)
    assert gone.receipt_id is not None
    await rig.rt[ForgetService].undo(SCOPE, gone.receipt_id)
    back = await show(rig, gone.receipt_id)
    assert (back.state, texts_of(back)) == ("undone", DELETED)
    assert b"llerg" not in str(await rig.rt.client.hgetall(rig.keys.forgetting(gone.receipt_id))).encode()
    await rig.rt[MemoryService].delete(SCOPE, ["f"])
    assert texts_of(await show(rig, gone.receipt_id)) == DELETED[1:], "what has gone since is not shown"


async def test_only_the_former_version_that_was_forgotten_is_shown(rig: Rig) -> None:
    await add(rig, record("User lives in Rome", "home", user_id="ana"))
    (memory,) = await rig.rt[MemoryStore].find(SCOPE, ["home"])
    assert memory is not None
    await rig.rt[MemoryCommits].commit(SCOPE, [Update(memory, record("User lives in Milan", "home", user_id="ana"))], BY)
    gone = await forget(rig, "I live in Rome")
    assert texts_of(await show(rig, gone.receipt_id)) == [("fact", "User lives in Rome")]


@pytest.mark.parametrize("erased", [Erasure(SCOPE.tenant, None, "ana", None), Erasure(SCOPE.tenant, None, "ana", "s")])
async def test_erased_data_is_not_shown_from_the_order_on(rig: Rig, erased: Erasure) -> None:
    await peanuts(rig)
    gone = await forget(rig, "I am allergic to peanuts")
    await rig.rt[ErasureOrders].order_erasure(SCOPE, erased)
    with pytest.raises(ErasureUnderWay):
        await show(rig, gone.receipt_id)
    await rig.work(DueKind.DELETION)
    with pytest.raises(NotFound):
        await show(rig, gone.receipt_id)


async def test_data_restored_by_an_undo_is_not_shown_after_its_erasure(rig: Rig) -> None:
    await peanuts(rig)
    gone = await forget(rig, "I am allergic to peanuts")
    assert gone.receipt_id is not None
    await rig.rt[ForgetService].undo(SCOPE, gone.receipt_id)
    await rig.rt[ErasureOrders].order_erasure(SCOPE, Erasure(SCOPE.tenant, None, "ana", "s"))
    await rig.work(DueKind.DELETION)
    with pytest.raises(NotFound):
        await show(rig, gone.receipt_id)
