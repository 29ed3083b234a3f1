"""Test that `ShownMemory` objects match the records that they replace."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from pydantic_core import to_json

from agent_memory.features.memories.shown_memories import ShownMemoryReader
from agent_memory.features.memories.store import MemoryStore
from agent_memory.features.memories.usage.store import UsageStore
from agent_memory.foundation.core.scope import Scope
from agent_memory_client.models import Evidence, MemoryRecord, MemoryRecordResult
from tests.support.rig import SCOPE, Rig, record

DAY = datetime(2024, 5, 1, 12, 30, 15, 250_000, tzinfo=UTC)
RECORDS = [
    record("plain", "plain"),
    record("whole seconds", "whole", created_at=DAY.replace(microsecond=0), updated_at=DAY, last_accessed=DAY),
    record("tagged", "tagged", topics=["a", "b"], entities=["É"], metadata={"none": None, "deep": {"list": [1, 2.5, None, "x"]}}),
    record("of somebody", "whose", user_id="ann", namespace="n|s", session_id="s 1", agent_id="bot", access_count=7, pinned=True),
    record("dated", "dated", event_date=datetime.fromisoformat("2023-01-01T00:30:00+02:00"), memory_type="episodic"),
    record("bounded", "bounded", valid_from=DAY, valid_to=DAY + timedelta(days=30000), slot="city", category="place", confidence=0.5),
    record("evident", "evident", evidence=[Evidence(session_id="s", message_ids=["m"], quote="so", at=DAY), Evidence(role="user")]),
]


async def written(rig: Rig) -> list[str]:
    await rig.remember(*(one.model_copy(deep=True) for one in RECORDS))
    return [rig.rt[MemoryStore].mid(SCOPE, one.id) for one in RECORDS]


def result_of(made: MemoryRecord) -> MemoryRecordResult:
    return MemoryRecordResult.model_validate({**dict(made), "dist": 0.25, "score": 0.75, "score_type": "hybrid"})


async def test_shown_memory_equals_its_record(rig: Rig) -> None:
    names = await written(rig)
    # A caller reads it once more, which the usage count includes.
    await rig.rt[UsageStore].count_readings({names[0]: 0, names[3]: 7})
    cards, records = (
        await ShownMemoryReader(rig.rt.client, rig.rt.keys)(SCOPE, names),
        await rig.rt[MemoryStore].load_by_names(SCOPE, names),
    )
    counted: list[int] = []
    for card, found in zip(cards, records, strict=True):
        assert card is not None
        assert found is not None
        made = found.record
        card.set_score(0.25, 0.75, "hybrid")
        wanted = result_of(made)
        assert json.loads(to_json(card.values)) == json.loads(wanted.model_dump_json())
        assert card.model() == wanted
        assert (card.created_at, card.event_date, card.when) == (made.created_at, made.event_date, made.event_date or made.created_at)
        counted.append(card.values["access_count"])
    assert counted[0] == 1
    assert counted[3] == 8


async def test_shown_memory_includes_the_current_usage_counts(rig: Rig) -> None:
    names, reader = await written(rig), ShownMemoryReader(rig.rt.client, rig.rt.keys)
    first = (await reader(SCOPE, names))[6]
    await rig.rt[UsageStore].count_readings({names[6]: 0})
    again = (await reader(SCOPE, names))[6]
    assert first is not None
    assert again is not None
    again.set_score(0.25, 0.75, "hybrid")
    assert (first.values["access_count"], again.values["access_count"]) == (0, 1)
    assert first.values["last_accessed"] < again.values["last_accessed"]
    assert "score" not in first.values or first.values["score"] is None


@pytest.mark.parametrize("change", [{"from_another_version": 1}, {"created_at": None}, {"topics": None, "evidence": None}])
async def test_memory_written_by_another_version_is_readable(rig: Rig, change: dict[str, object]) -> None:
    (name, *_) = await written(rig)
    key = rig.rt.keys.memory(name)
    body = {**json.loads(await rig.rt.client.hget(key, "j") or "{}"), **change}
    await rig.rt.client.hset(key, "j", json.dumps({field: value for field, value in body.items() if field != "created_at" or value}))
    card, found = (
        (await ShownMemoryReader(rig.rt.client, rig.rt.keys)(SCOPE, [name]))[0],
        (await rig.rt[MemoryStore].load_by_names(SCOPE, [name]))[0],
    )
    assert card is not None
    assert found is not None
    card.set_score(0.25, 0.75, "hybrid")
    shown, wanted = json.loads(to_json(card.values)), json.loads(result_of(found.record).model_dump_json())
    # If a record has no time, it gets the time of the reading.
    assert {**shown, "created_at": ""} == {**wanted, "created_at": ""}


async def test_shown_memories_of_other_owners_are_not_returned(rig: Rig) -> None:
    names = await written(rig)
    reader = ShownMemoryReader(rig.rt.client, rig.rt.keys)
    assert await reader(Scope("another"), names) == [None] * len(names)
    ann = [None if card is None else card.id for card in await reader(Scope("default", users=frozenset({"ann"})), names)]
    assert [one for one in ann if one] == ["whose"]
    assert await reader(SCOPE, ["0" * 32]) == [None]
