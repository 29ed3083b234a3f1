"""Test that items follow a change of the embedding model."""

from __future__ import annotations

from agent_memory.extensions.items.search import ItemSearch
from agent_memory.extensions.items.service import ItemService
from agent_memory.extensions.items.store import ItemOwner
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory_client.models import PutItem
from tests.support.model_changes import FIRST, SECOND, Store, act, fields, filling, reach, start, store, uses
from tests.support.rig import SCOPE

__all__ = ["store"]


async def test_items_are_embedded_after_a_change_there_and_back(store: Store) -> None:
    rig = await store.open()
    item = PutItem(path=["a"], key="k", value={"text": "a ferry to the island"})
    await rig.rt[ItemService].write_items(SCOPE, ItemOwner(None, "ada"), [item])
    await rig.work(DueKind.ITEM)
    async with filling(rig.rt):
        for model in (SECOND, FIRST):
            await start(rig, model)
            await reach(rig, "swapped")
            await uses(rig, model.model)
            await act(rig, "confirm")
            await reach(rig, "none")
            assert not await rig.rt[ItemSearch].list_unembedded(9)
            assert await fields(rig) == {rig.rt.current.spec.field: 1}
