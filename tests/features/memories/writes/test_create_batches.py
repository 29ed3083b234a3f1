"""Test a create request whose memories repeat or supersede each other."""

from __future__ import annotations

from typing import Any

import pytest

from agent_memory.features.memories.changes.service import HistoryService
from agent_memory.features.memories.service import MemoryService
from agent_memory.features.memories.similar_memories import SimilarMemoryStore
from agent_memory.features.memories.store import MemoryStore
from agent_memory.foundation.core.errors import Conflict, IdTaken
from agent_memory_client.models import CreateMemoryRecordRequest
from tests.support.rig import SCOPE, Rig, record

MANY = 100


async def create(rig: Rig, *records: dict[str, Any]) -> None:
    body = {"memories": [{"user_id": "ada", **fields} for fields in records]}
    await rig.rt[MemoryService].create(SCOPE, CreateMemoryRecordRequest.model_validate(body))


async def current(rig: Rig) -> list[str]:
    return sorted(memory.id for memory in await rig.stored())


def weights(count: int, **more: Any) -> list[dict[str, Any]]:
    return [{"id": f"w{day}", "text": f"Weight noted on day {day}", "slot": "weight", **more} for day in range(count)]


async def test_hundred_facts_of_a_slot_in_one_create_supersede_each_other(rig: Rig) -> None:
    get, history = rig.rt[MemoryService].get, rig.rt[HistoryService]
    await create(rig, {"id": "before", "text": "Weight not noted", "slot": "weight"})
    for _ in range(2):
        await create(rig, *weights(MANY))
        assert await current(rig) == ["w99"]
        links = [((await get(SCOPE, name)).supersedes, (await get(SCOPE, name)).superseded_by) for name in ("before", "w0", "w50", "w99")]
        assert links == [(None, "w0"), (["before"], "w1"), (["w49"], "w51"), (["w98"], None)]
    changes = (await history.read_changes(SCOPE, {}, "w99", 0, 10)).changes
    assert [change.kind for change in changes] == ["supersede"]
    await history.undo_by_id(SCOPE, changes[0].id)
    assert await current(rig) == ["w98"]


async def test_undo_of_a_batch_restores_the_fact_before_it(rig: Rig) -> None:
    await create(rig, {"id": "before", "text": "Weight not noted", "slot": "weight"})
    await create(rig, *weights(30))
    (change,) = (await rig.rt[HistoryService].read_changes(SCOPE, {}, "before", 0, 10)).changes
    assert (await rig.rt[HistoryService].undo_batch(SCOPE, change.batch_id)).total == 30
    assert await current(rig) == ["before"]


@pytest.mark.parametrize("known", [False, True], ids=["new", "stored before"])
async def test_hundred_equal_texts_in_one_create_are_one_memory_with_evidence(rig: Rig, known: bool) -> None:
    if known:
        await create(rig, {"id": "t0", "text": "I like tea"})
    texts = [{"id": f"t{n}", "text": "I like tea" if n % 2 else "i like TEA", "topics": [f"topic{n % 3}"]} for n in range(MANY)]
    await create(rig, *texts, {"id": "other", "text": "I like figs"})
    assert await current(rig) == ["other", "t0"]
    tea = await rig.rt[MemoryService].get(SCOPE, "t77")
    assert (tea.text.casefold(), sorted(tea.topics or [])) == ("i like tea", ["topic0", "topic1", "topic2"])
    assert (await rig.rt[HistoryService].read_evidence(SCOPE, "t0")).memory_id == "t0"
    mid = rig.rt[MemoryStore].mid(SCOPE, "t0")
    assert await rig.rt.client.hget(rig.keys.memory(mid), "ts") == str(MANY).encode()


async def test_facts_in_any_order_of_time_leave_the_latest_one_current(rig: Rig) -> None:
    days = [3, 1, 4, 2, 5]
    homes = [{"id": f"d{day}", "text": f"Home {day}", "slot": "home", "valid_from": f"2026-01-0{day}T00:00:00Z"} for day in days]
    await create(rig, *homes)
    assert await current(rig) == ["d5"]
    await create(rig, homes[3])
    assert await current(rig) == ["d5"]
    expected = {f"d{day}": (await rig.rt[MemoryService].get(SCOPE, f"d{day}")).valid_to for day in days}
    await rig.rt[MemoryService].delete(SCOPE, list(expected))
    for home in homes:
        await create(rig, home)
    assert {name: (await rig.rt[MemoryService].get(SCOPE, name)).valid_to for name in expected} == expected


async def test_text_of_a_fact_that_ended_within_a_create_can_be_stored_again(rig: Rig) -> None:
    facts = [{"id": f"h{n}", "text": text, "slot": "home"} for n, text in enumerate(["Lives in Oslo", "Lives in Rome", "Lives in Oslo"])]
    await create(rig, *facts)
    assert await current(rig) == ["h2"]
    await create(rig, {"id": "h1", "text": "Lives in Bonn", "slot": "home"}, {"id": "h3", "text": "Lives in Oslo", "slot": "home"})
    assert await current(rig) == ["h3"]


async def test_refused_create_stores_none_of_its_memories(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    await create(rig, {"id": "now", "text": "Weight not noted", "slot": "weight", "valid_from": "2020-01-01T00:00:00Z"})
    load, service = SimilarMemoryStore.load_existing, rig.rt[MemoryService]

    async def load_then_change(self: SimilarMemoryStore, scope: Any, records: Any) -> Any:
        existing = await load(self, scope, records)
        version = int(await rig.rt.client.incr("turn"))
        await service.store(SCOPE, [record(f"Weight {version}", "now", user_id="ada", slot="weight", valid_from="2020-01-01T00:00:00Z")])
        return existing

    monkeypatch.setattr(SimilarMemoryStore, "load_existing", load_then_change)
    with pytest.raises(Conflict):
        await create(rig, {"id": "figs", "text": "I like figs"}, *weights(3))
    assert await current(rig) == ["now"]


async def test_create_with_a_taken_id_stores_none_of_its_repeats(rig: Rig) -> None:
    await create(rig, {"id": "taken", "text": "mine", "user_id": "bob"})
    with pytest.raises(IdTaken):
        await create(rig, *weights(3), {"id": "taken", "text": "I like figs"})
    assert await current(rig) == ["taken"]
