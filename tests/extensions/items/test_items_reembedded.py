"""Test items and procedures when the embedding model changes."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest

from agent_memory.extensions.items.search import ItemSearch
from agent_memory.extensions.items.service import ItemService
from agent_memory.extensions.items.store import ItemOwner
from agent_memory.extensions.procedures.service import ProcedureService
from agent_memory.extensions.procedures.store import ProcedureStore
from agent_memory.features.reembed.embedding_choice import EmbeddingChoice
from agent_memory.features.reembed.store import ReembedStore
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory_client.models import PutItem
from agent_memory_client.models.features import procedures as wire
from agent_memory_worker.items import embed_missing
from tests.support.lookalike import Lookalike
from tests.support.model_changes import FIRST, SECOND, Store, act, fields, filling, reach, start, store, uses
from tests.support.rig import SCOPE, record

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


async def test_items_are_embedded_before_a_busy_store_switches_models(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    rig, pick, change, numbers = await store.open(), ReembedStore.pick, ReembedStore.change, itertools.count()
    left: list[Any] = []

    async def busy(self: Any, *arguments: Any) -> Any:
        await replace(rig, rt=rig.rt.current).remember(record(f"note {next(numbers)}"))
        return await pick(self, *arguments)

    async def noted(self: Any, phases: Any, fields: Any, **more: Any) -> None:
        if fields.get("phase") == "swapped":
            other = rig.rt.switch and rig.rt.switch.find(EmbeddingChoice("openai", "second", 48), 0)
            assert other
            left.append(await other[ItemSearch].list_unembedded(9))
        await change(self, phases, fields, **more)

    monkeypatch.setattr(ReembedStore, "pick", busy)
    monkeypatch.setattr(ReembedStore, "change", noted)
    await rig.rt[ItemService].write_items(SCOPE, ItemOwner(None, "ada"), [PutItem(path=["a"], key="k", value={"text": "a ferry"})])
    await rig.work(DueKind.ITEM)
    await start(rig)
    async with filling(rig.rt):
        await reach(rig, "swapped")
    assert left
    assert not left[-1]


@pytest.mark.parametrize("action", ["confirm", "rollback"])
async def test_items_and_procedures_that_the_new_model_refuses_delay_no_change(store: Store, lookalike: Lookalike, action: Any) -> None:
    rig = await store.open()
    lookalike.refused = ("second", "forbidden")
    texts = ("a ferry to the island", "a forbidden ferry")
    items = [PutItem(path=["a"], key=text, value={"text": text}) for text in texts]
    await rig.rt[ItemService].write_items(SCOPE, ItemOwner(None, "ada"), items)
    for text in texts:
        await rig.rt[ProcedureService].create(SCOPE, wire.CreateProcedureRequest(when_to_use=text, steps=["go"]))
    await rig.work(DueKind.ITEM, DueKind.ORDER)
    async with filling(rig.rt):
        await start(rig)
        await reach(rig, "swapped")
        await uses(rig, "second")
        await act(rig, action)
        await reach(rig, "none")
    await uses(rig, "second" if action == "confirm" else "first")
    # The periodic job calls the model again, as for new texts.
    left = 1 if action == "confirm" else 0
    assert len(await rig.rt[ItemSearch].list_unembedded(9)) == left
    assert len(await rig.rt[ProcedureStore].unembedded(9)) == left
    assert await fields(rig) == {rig.rt.current.spec.field: 2 - left}
    lookalike.refused = None
    await embed_missing(rig.rt.current, 9)
    assert not await rig.rt[ItemSearch].list_unembedded(9)
