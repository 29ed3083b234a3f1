"""Vectors of queries outlive their process: another one finds by meaning what it never had embedded."""

from __future__ import annotations

import numpy as np
import pytest
import redis.asyncio as aioredis

from agent_memory.services.access import scope_of_work
from agent_memory.storage import query_vectors
from agent_memory.storage.indexes import VectorSpec
from agent_memory.storage.query_vectors import QueryVectorStore
from agent_memory_client.models import MemoryRecordResultsResponse, SearchRequest
from tests.support.commands import commands_of
from tests.support.rig import MakeRig, Rig, record
from tests.support.waiting import wait_until

QUERY = "Where does the ferry go?"
SPEC = VectorSpec("model", 3)
VECTOR = np.array([0.5, -0.25, 1.0], dtype=np.float32)


async def search(rig: Rig, query: str = QUERY, tenant: str = "default") -> MemoryRecordResultsResponse:
    return await rig.rt.search.search(scope_of_work(tenant), SearchRequest(text=query, limit=3))


async def places(rig: Rig) -> set[str]:
    found = [key.decode() async for key in rig.rt.client.scan_iter(match=f"{rig.keys.root}qv:*", count=1000)]
    return {key.removeprefix(rig.keys.root) for key in found}


async def left_in_redis(rig: Rig) -> None:
    async def there() -> bool:
        return bool(await places(rig))

    await wait_until(there, "the query's vector is in Redis")


@pytest.fixture
async def ferry(rig: Rig) -> Rig:
    await rig.remember(record("The boat sails to Bergen"), record("The ferry is late"), record("Ada plays the violin"))
    return rig


async def test_another_process_need_not_ask_the_model(ferry: Rig, make_rig: MakeRig) -> None:
    first = await search(ferry)
    await left_in_redis(ferry)
    async with make_rig(KEY_PREFIX=ferry.keys.prefix) as other:
        other.embedder.away = True
        assert (await search(other, tenant="another")).notices, "one tenant's queries are not another's"
        found = await search(other)
        assert not found.notices
        assert [one.text for one in found.memories] == [one.text for one in first.memories]
        assert (await search(other, "Who plays the violin?")).notices, "what nobody has asked must be embedded"


async def test_a_query_in_the_memory_of_the_process_asks_and_writes_nothing(ferry: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    await search(ferry)
    await left_in_redis(ferry)
    await ferry.rt.usage.flush()  # readings are counted after the answer
    sent = commands_of(ferry, monkeypatch)
    await search(ferry)
    assert not [one for one in sent if b":qv:" in one]


async def test_vectors_end_and_have_their_places(ferry: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query_vectors, "PLACES", 1)
    for query in (QUERY, "Who plays the violin?"):
        await search(ferry, query)
        await left_in_redis(ferry)
    assert await places(ferry) == {"qv:0"}
    assert 0 < await ferry.rt.client.ttl(ferry.keys.query_vector(0)) <= 3600


@pytest.mark.parametrize("seconds", [60, 0])
async def test_they_are_kept_for_as_long_as_they_are_to_be(rig: Rig, make_rig: MakeRig, redis_url: str, seconds: int) -> None:
    async with make_rig(EMBEDDING_CACHE_SECONDS=seconds, KEY_PREFIX=rig.keys.prefix) as rig:
        await rig.remember(record("The boat sails to Bergen"))
        assert not (await search(rig)).notices
    # What waits is written when the runtime ends.
    async with aioredis.Redis.from_url(redis_url) as client:
        left = [key async for key in client.scan_iter(match=f"{rig.keys.root}qv:*", count=1000)]
        assert len(left) == (1 if seconds else 0)
        assert all([0 < await client.ttl(key) <= seconds for key in left])
        for key in left:
            await client.delete(key)


def test_what_is_in_a_place_must_be_the_query_s_own(rig: Rig) -> None:
    store = QueryVectorStore(rig.rt.client, rig.keys, SPEC, seconds=60)
    value = store.value("t", "ferry", VECTOR)
    found = store.read(value, "t", "ferry")
    assert found is not None
    np.testing.assert_array_equal(found, VECTOR)
    for reply, tenant, spoken in (
        (value, "t", "boat"),
        (value, "u", "ferry"),
        (None, "t", "ferry"),
        (value[:-4], "t", "ferry"),
        (b"", "t", ""),
    ):
        assert store.read(reply, tenant, spoken) is None
    for other in (VectorSpec("other", 3), VectorSpec("model", 2)):
        assert QueryVectorStore(rig.rt.client, rig.keys, other, seconds=60).read(value, "t", "ferry") is None
