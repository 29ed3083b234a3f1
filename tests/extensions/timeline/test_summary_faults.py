"""Test summaries when a worker dies."""

from __future__ import annotations

from typing import Any

import pytest

from agent_memory.extensions.timeline.follower import TimelineFollower
from agent_memory.extensions.timeline.store import TimelineStore
from agent_memory.extensions.timeline.summaries.store import SummaryStore
from agent_memory.features.jobs.order_store import OrderStore
from agent_memory.features.memories.store import MemoryStore
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory_worker.timeline import order_summaries, summarize_periods
from tests.support.rig import SCOPE, Rig
from tests.support.timelines import TRIP, close_periods, follow, periods, store, stored_bytes, text_of


class Died(BaseException):
    """Simulates the death of a worker process. No code catches it."""


async def summaries(rig: Rig) -> dict[str, tuple[str | None, str | None]]:
    """Return the state and text of each of ada's days, weeks and months."""
    named = {f"{unit} {name}": period for unit in ("day", "week", "month") for name, period in (await periods(rig, unit)).items()}
    return {name: (period.state, period.summary and period.summary.text) for name, period in named.items()}


def dying(monkeypatch: pytest.MonkeyPatch, owner: type[Any], name: str, call: int, *, after: bool) -> None:
    """Simulate a worker that dies before or after the n-th call of a method."""
    method, calls = getattr(owner, name), list[int]()

    async def dies(self: Any, *arguments: Any) -> Any:
        calls.append(1)
        if len(calls) == call and not after:
            raise Died
        done = await method(self, *arguments)
        if len(calls) == call:
            raise Died
        return done

    monkeypatch.setattr(owner, name, dies)


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("call", [1, 3, 6])
async def test_worker_death_leaves_each_summary_stored_or_pending(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, call: int, *, after: bool
) -> None:
    await store(rig, *TRIP)
    await order_summaries(rig.rt)
    (claim,) = await rig.claim(DueKind.ORDER)
    order = await rig.rt[OrderStore].load_order(claim.member)
    assert order is not None
    with monkeypatch.context() as patch:
        dying(patch, SummaryStore, "put_summary", call, after=after)
        with pytest.raises(Died):
            await summarize_periods(rig.rt, order)
    left = await summaries(rig)
    made = {name: state for name, state in left.items() if state[0] == "current"}
    assert {state for state in left.values() if state[0] != "current"} <= {("pending", None)}
    await rig.make_due(DueKind.ORDER)
    await rig.work(DueKind.ORDER)
    whole = await summaries(rig)
    assert {state for state, _ in whole.values()} == {"current"}
    assert made.items() <= whole.items()
    assert (await text_of(rig)).count("\n") == 4
    assert not await rig.marks(DueKind.ORDER)


@pytest.mark.parametrize("after", [False, True])
async def test_worker_death_after_an_edit_leaves_old_summary_or_none(rig: Rig, monkeypatch: pytest.MonkeyPatch, *, after: bool) -> None:
    await store(rig, *TRIP)
    await close_periods(rig)
    before = await text_of(rig)
    (home,) = await rig.rt[MemoryStore].find(SCOPE, ["home"])
    assert home is not None
    edited = home.record.model_copy(update={"text": "Ada sailed home on 9 March 2024"})
    await rig.rt[MemoryStore].replace_memory(SCOPE, home, edited)
    assert await text_of(rig) == before
    with monkeypatch.context() as patch:
        dying(patch, TimelineStore, "follow", 1, after=after)
        with pytest.raises(Died):
            await rig.rt[TimelineFollower].follow_memories([rig.keys.mid(SCOPE.tenant, "home")])
    assert (await summaries(rig))["month 2024-03"] == (("pending", None) if after else ("current", before))
    await follow(rig)
    await close_periods(rig)
    assert await text_of(rig) == before.replace("flew home", "sailed home")
    assert "flew home" not in await stored_bytes(rig)
