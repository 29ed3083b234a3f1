"""Test that neither a retry nor a stalled worker deletes newer data."""

from __future__ import annotations

import asyncio
import json

import pytest

from agent_memory.features.jobs.erasure_orders import Erasure, ErasureOrders
from agent_memory.features.jobs.operation_store import OperationStore
from agent_memory.features.memories.service import MemoryService
from agent_memory.features.privacy.erasure_store import ErasureOrder, ErasureStore
from agent_memory.features.sessions.service import SessionService
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory_client.models import UpdateWorkingMemory
from agent_memory_worker.privacy.erase import erase
from tests.support.rig import SCOPE, MakeRig, Rig, record

pytestmark = pytest.mark.slow

_ANN = Erasure(SCOPE.tenant, None, "ann", None)


async def fills(rig: Rig, what: str) -> None:
    body = {"user_id": "ann", "messages": [{"role": "user", "content": f"{what} figs", "id": what}]}
    await rig.rt[SessionService].put(SCOPE, "s", UpdateWorkingMemory.model_validate(body))
    await rig.rt[MemoryService].store(SCOPE, [record(f"Ann's {what} boat", user_id="ann")])
    await rig.work()


async def there(rig: Rig) -> list[str]:
    return sorted(one.text for one in await rig.stored())


async def test_repeated_deletion_request_is_one_order(make_rig: MakeRig) -> None:
    """Otherwise, a leftover order could delete data written after the erasure."""
    async with make_rig() as rig:
        await fills(rig, "old")
        marks = [await rig.rt[ErasureOrders].order_erasure(SCOPE, _ANN) for _ in range(3)]
        assert len(set(marks)) == 1
        (claim,) = await rig.claim(DueKind.DELETION)
        await rig.rt[ErasureOrders].order_erasure(SCOPE, _ANN)
        assert await rig.claim(DueKind.DELETION) == [], "while it is carried out it waits"
        await erase(rig.rt, claim.member)
        assert not await rig.rt.outbox.end_claim(DueKind.DELETION, claim), "asked for again meanwhile"
        await rig.work(DueKind.DELETION)
        assert (await there(rig), await rig.marks(DueKind.DELETION)) == ([], {})
        (left,) = [key for key in await rig.raw_keys() if key.startswith("del:")]
        kept = json.loads(await rig.rt.client.get(rig.keys.root + left) or b"{}")
        assert kept.keys() == {"tn", "done", "at", "end"}, "a receipt, and nothing that is still to be carried out"


async def test_repeated_request_does_not_restart_a_running_erasure(make_rig: MakeRig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise, frequent retries would prevent a long erasure from finishing."""
    async with make_rig() as rig:
        await fills(rig, "old")
        mark = await rig.rt[ErasureOrders].order_erasure(SCOPE, _ANN)
        is_open = rig.rt[ErasureStore].is_open

        async def asked_again(order: ErasureOrder) -> bool:
            await rig.rt[ErasureOrders].order_erasure(SCOPE, _ANN)
            return await is_open(order)

        monkeypatch.setattr(rig.rt[ErasureStore], "is_open", asked_again)
        await erase(rig.rt, mark.member)
        assert (await there(rig), await rig.rt[ErasureStore].load(mark.member)) == ([], None)


@pytest.mark.parametrize("looks", [1, 2])
async def test_stalled_worker_deletes_nothing_written_after_the_erasure(
    make_rig: MakeRig, monkeypatch: pytest.MonkeyPatch, looks: int
) -> None:
    """The worker stalls right after it has read sessions or memories."""
    async with make_rig() as rig, make_rig(KEY_PREFIX=rig.settings.redis.key_prefix) as other:
        await fills(rig, "old")
        mark = await rig.rt[ErasureOrders].order_erasure(SCOPE, _ANN)
        stopped, woken = asyncio.Event(), asyncio.Event()
        seen, is_open = 0, rig.rt[ErasureStore].is_open

        async def slow(order: object) -> bool:
            nonlocal seen
            seen += 1
            answer = await is_open(order)  # type: ignore[arg-type]
            if seen == looks:
                stopped.set()
                await woken.wait()
            return answer

        monkeypatch.setattr(rig.rt[ErasureStore], "is_open", slow)
        zombie = asyncio.create_task(erase(rig.rt, mark.member))
        await stopped.wait()
        await erase(other.rt, mark.member)
        assert await there(rig) == []
        await fills(other, "old")
        await fills(other, "new")
        woken.set()
        await zombie
        assert await there(rig) == ["Ann's new boat", "Ann's old boat", "new figs"]
        assert await rig.contents("s", user_id="ann") == ["new figs"]


async def test_dropped_erasure_leaves_no_order_that_names_the_user(make_rig: MakeRig) -> None:
    async with make_rig() as rig:
        mark = await rig.rt[ErasureOrders].order_erasure(SCOPE, _ANN)
        await OperationStore(rig.rt.client, rig.keys).drop_mark(mark)
        assert [key for key in await rig.raw_keys() if key.startswith("del:")] == []
        await fills(rig, "new")
        assert await there(rig) != []
