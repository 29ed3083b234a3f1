"""Test which embedding model a process uses if its settings conflict with an earlier change."""

from __future__ import annotations

from typing import Any

import pytest

from agent_memory.features.reembed.service import ReembedService
from tests.support.model_changes import Store, act, filling, reach, start, store, uses
from tests.support.rig import Rig

__all__ = ["store"]

_SECOND: dict[str, Any] = {"EMBEDDING_MODEL": "second", "EMBEDDING_DIMENSIONS": 48}


async def change_model(rig: Rig, action: Any) -> None:
    """Start a change to the second model, and finish it with `action`."""
    await start(rig)
    if action == "abort":
        await act(rig, action)
    async with filling(rig.rt):
        if action != "abort":
            await reach(rig, "swapped")
            await uses(rig, "second")
            await act(rig, action)
        await reach(rig, "none")


def hints(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [str(vars(entry)["hint"]) for entry in caplog.records if "store keeps its embedding model" in entry.getMessage()]


@pytest.mark.parametrize("action", ["abort", "rollback"])
async def test_configured_model_is_used_after_a_change_to_it_did_not_last(
    store: Store, action: Any, caplog: pytest.LogCaptureFixture
) -> None:
    await change_model(await store.open(), action)
    assert (await store.open(**_SECOND)).rt.current.spec.model == "second"
    assert (await store.open()).rt.current.spec.model == "first"
    assert hints(caplog) == []


async def test_replaced_model_in_the_settings_is_ignored_with_a_warning(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    await change_model(await store.open(), "confirm")
    assert (await store.open()).rt.current.spec.model == "second"
    assert hints(caplog) == ["reembed replaced first; to change the model, run `agent-memory reembed first`"]


async def test_process_that_slept_through_a_rollback_uses_the_former_model(store: Store) -> None:
    rig, asleep = await store.open(), await store.open(begin=False)
    assert asleep.rt.switch is not None
    await start(rig)
    async with filling(rig.rt):
        await reach(rig, "swapped")
        await uses(rig, "second")
        await asleep.rt.switch.look()
        await asleep.rt.switch.look()
        assert asleep.rt.current.spec.model == "second"
        await rig.rt[ReembedService].act("rollback")
        await uses(rig, "first")
        # As after 30 seconds of sleep.
        await rig.rt.client.delete(f"{rig.keys.root}re:processes")
        await reach(rig, "none")
    await asleep.rt.switch.look()
    assert asleep.rt.current.spec.model == "first"
