"""Test that memory reads are counted in a separate record, which all dependent features use."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agent_memory.features.memories.retention.service import RetentionService, parse_policy
from agent_memory.features.memories.search.service import SearchService
from agent_memory.features.memories.service import MemoryService
from agent_memory.features.memories.store import MemoryStore
from agent_memory.features.memories.upkeep.scan import Selection
from agent_memory.features.memories.usage.log import UsageLog
from agent_memory.features.memories.usage.store import UsageStore
from agent_memory.features.recall.service import RecallService
from agent_memory.foundation.core.errors import RedisUnavailable
from agent_memory_client.models import EditMemoryRecordRequest, MemoryPromptRequest, MemoryRecord, SearchRequest
from tests.support.rig import SCOPE, MakeRig, Rig, record

LONG_AGO = datetime.now(UTC) - timedelta(days=100)


@pytest.fixture
async def known(rig: Rig) -> Rig:
    await rig.remember(*(record(text, last_accessed=LONG_AGO) for text in ("the ferry to Elba", "a train to Porto")))
    return rig


async def stored(rig: Rig, memory_id: str) -> MemoryRecord:
    """Return the memory. Does not count as a read."""
    await rig.rt[UsageLog].flush()
    found = (await rig.rt[MemoryStore].get(SCOPE, [memory_id]))[0]
    assert found is not None
    return found


async def look(rig: Rig, text: str | None, **more: Any) -> list[str]:
    request = SearchRequest.model_validate({"text": text, "search_mode": "keyword", **more})
    return [one.id for one in (await rig.rt[SearchService].search(SCOPE, request)).memories]


async def prompt(rig: Rig, query: str) -> None:
    body = MemoryPromptRequest.model_validate({"query": query, "long_term_search": {"search_mode": "keyword"}})
    assert (await rig.rt[RecallService].prompt(SCOPE, body)).long_term_memories


async def read(rig: Rig, how: str) -> None:
    if how == "get":
        await rig.rt[MemoryService].get(SCOPE, "the ferry to Elba")
    elif how == "search":
        assert await look(rig, "ferry") == ["the ferry to Elba"]
    else:
        await prompt(rig, "ferry")


@pytest.mark.parametrize("how", ["get", "search", "prompt"])
async def test_reading_is_counted_once_per_quarter_hour(known: Rig, how: str) -> None:
    for _ in range(3):
        await read(known, how)
    found, other = await stored(known, "the ferry to Elba"), await stored(known, "a train to Porto")
    assert (found.access_count, other.access_count) == (1, 0)
    assert datetime.now(UTC) - found.last_accessed < timedelta(minutes=1)
    assert other.last_accessed == LONG_AGO
    # Another process does not know of this process's writes: Redis enforces the limit.
    assert await known.rt[UsageStore].count_readings({known.keys.mid(SCOPE.tenant, found.id): 1}) == 0
    await known.rt.client.hset(known.keys.usage, known.keys.mid(SCOPE.tenant, found.id), f"1 {LONG_AGO.timestamp() * 1000:.0f}")
    assert await known.rt[UsageStore].count_readings({known.keys.mid(SCOPE.tenant, found.id): 1}) == 1
    assert (await stored(known, found.id)).access_count == 2


async def test_listing_memories_counts_no_reading(known: Rig) -> None:
    assert len(await look(known, None)) == 2
    assert await look(known, "ferry", recency_boost=False)
    assert {(await stored(known, name)).access_count for name in ("the ferry to Elba", "a train to Porto")} == {0}


async def test_counting_a_reading_writes_no_indexed_field(known: Rig) -> None:
    mid = known.keys.mid(SCOPE.tenant, "the ferry to Elba")
    names = (known.keys.memory(mid), known.keys.vector(mid))
    before = [await known.rt.client.hgetall(name) for name in names]
    for how in ("get", "search", "prompt"):
        await read(known, how)
    assert (await stored(known, "the ferry to Elba")).access_count == 1
    assert [await known.rt.client.hgetall(name) for name in names] == before


async def test_usage_count_survives_a_patch_and_is_removed_by_a_delete(known: Rig) -> None:
    await read(known, "get")
    await known.rt[UsageLog].flush()
    changed = await known.rt[MemoryService].patch(SCOPE, "the ferry to Elba", EditMemoryRecordRequest(topics=["ships"]))
    assert changed.access_count == 1
    assert (await stored(known, changed.id)).access_count == 1
    await known.rt[MemoryService].delete(SCOPE, [changed.id])
    assert await known.rt.client.hlen(known.keys.usage) == await known.rt.client.scard(known.keys.usage_unfolded) == 0
    # Read before the deletion, counted after it: the count does not restore the memory.
    assert await known.rt[UsageStore].count_readings({known.keys.mid(SCOPE.tenant, changed.id): 1}) == 0


async def test_forgetting_measures_inactivity_from_the_last_reading(known: Rig) -> None:
    await read(known, "get")
    await known.rt[UsageLog].flush()
    policy = parse_policy({"max_inactive_days": 30})
    answer = await known.rt[RetentionService].forget_by_policy(SCOPE, policy, Selection(), limit=100, dry_run=False)
    assert answer.deleted_ids == ["a train to Porto"]


async def test_filters_use_readings_after_they_are_folded_in(known: Rig) -> None:
    await read(known, "get")
    await known.rt[UsageLog].flush()
    since = {"last_accessed": {"gte": (datetime.now(UTC) - timedelta(days=1)).isoformat()}}
    assert await look(known, None, **since) == []
    await known.rt.client.hset(known.keys.usage, "f" * 32, "3 1700000000000")  # of a deleted memory
    assert await known.rt[UsageStore].fold_usage() == 1
    assert await look(known, None, **since) == ["the ferry to Elba"]
    assert await look(known, "ferry", search_mode="semantic", **since) == ["the ferry to Elba"]
    assert await known.rt[UsageStore].fold_usage() == 0
    assert await known.rt.client.hlen(known.keys.usage) == 1


async def test_usage_log_flushes_on_close_and_tolerates_a_missing_redis(make_rig: MakeRig) -> None:
    async with make_rig() as rig:
        await rig.remember(record("the ferry to Elba"))
        mid = rig.keys.mid(SCOPE.tenant, "the ferry to Elba")
        slow = UsageLog(rig.rt[UsageStore], delay_seconds=3600)
        slow.note_readings([(mid, 4)])
        assert await rig.rt.client.hlen(rig.keys.usage) == 0
        await slow.close()
        assert (await rig.rt.client.hget(rig.keys.usage, mid)).startswith(b"5 ")

        class Away:
            async def count_readings(self, seen: dict[str, int]) -> int:
                raise RedisUnavailable("away")

        lost = UsageLog(Away(), delay_seconds=3600)  # pyright: ignore[reportArgumentType]
        lost.note_readings([(mid, 4)])
        await lost.close()
