"""Test long-term memories in Redis: idempotent writes, changes, deletion, and index entries."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import numpy as np
import pytest

from agent_memory.features.memories.store import Hits, IndexEntry, MemoryStore, parse_hits
from agent_memory.features.memories.upkeep.reindex import Reindexer
from agent_memory.foundation.core.scope import Scope, SessionRef
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.foundation.storage.connection import read
from agent_memory.foundation.storage.search import filters
from agent_memory.foundation.text.terms import query_terms
from agent_memory_client.models import MemoryRecord
from tests.support.rig import SCOPE, Rig, gathered, record

M = DueKind.MEMORY


async def by_words(rig: Rig, text: str, scope: Scope = SCOPE) -> Hits:
    store = rig.rt[MemoryStore]
    return parse_hits((await read(rig.rt.client, lambda pipe: store.queue_words(pipe, filters.where(scope), query_terms(text), 1000)))[0])


async def by_vector(rig: Rig, text: str, limit: int = 1000) -> Hits:
    vector = (await rig.rt.embedder.embed([text]))[0]
    store = rig.rt[MemoryStore]
    return parse_hits((await read(rig.rt.client, lambda pipe: store.queue_nearest(pipe, filters.where(SCOPE), vector, limit)))[0])


async def test_memory_is_read_back_unchanged(rig: Rig) -> None:
    full = record(
        'Tab\t, "quotes", \\ backslash, é 日本 😀 \u2028',
        "id with blanks/slashes, commas",
        namespace="n",
        user_id="ü",
        session_id="s",
        topics=["A b", "é"],
        entities=["X"],
        pinned=True,
        access_count=2**53 - 1,
        event_date=datetime(1, 1, 1, tzinfo=UTC),
        created_at=datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
        metadata={"a": [], "b": {}, "big": 2**60, "float": 0.1, "": None},
        extracted_from=["m1"],
    )
    assert await rig.rt[MemoryStore].write(SCOPE, [full]) == ["new"]
    (back, none) = await rig.rt[MemoryStore].get(SCOPE, [full.id, "other"])
    # The server records the origin of every memory.
    assert back == full.model_copy(update={"source_class": "client", "trust": 1.0})
    assert none is None
    assert await rig.rt[MemoryStore].get(Scope("other"), [full.id]) == [None]
    assert await rig.rt[MemoryStore].get(SCOPE, []) == []


async def test_a_repeated_write_changes_nothing(rig: Rig) -> None:
    one = MemoryRecord(id="1", text="said once")
    assert await rig.rt[MemoryStore].write(SCOPE, [one]) == ["new"]
    await rig.index()
    before = await rig.rt.client.hgetall(rig.keys.memory(rig.rt[MemoryStore].mid(SCOPE, "1")))
    # Each parse generates the times that the writer omitted; they are not part of the content.
    assert await rig.rt[MemoryStore].write(SCOPE, [MemoryRecord(id="1", text="said once")]) == ["same"]
    assert await rig.marks(M) == {}
    assert await rig.rt.client.hgetall(rig.keys.memory(rig.rt[MemoryStore].mid(SCOPE, "1"))) == before
    assert await rig.rt[MemoryStore].write(SCOPE, [MemoryRecord(id="1", text="said otherwise")]) == ["changed"]
    assert len(await rig.marks(M)) == 1


async def test_memory_is_found_by_keyword_immediately_and_by_vector_after_indexing(rig: Rig) -> None:
    await rig.rt[MemoryStore].write(SCOPE, [record("The ferry to Elba leaves at noon")])
    assert (await by_words(rig, "When does the ferry leave?")).total == 1
    assert (await by_vector(rig, "boat to the island")).total == 0
    await rig.index()
    assert (await by_vector(rig, "boat to the island")).total == 1
    assert (await by_words(rig, "When does the ferry leave?")).total == 1


async def test_replaced_memory_leaves_no_old_field_or_index_entry(rig: Rig) -> None:
    old = record("old ferry", "1", topics=["t"], entities=["e"], namespace="n", user_id="u", session_id="s", event_date=datetime.now(UTC))
    await rig.remember(old)
    found = await rig.rt[MemoryStore].require(SCOPE, "1")
    assert await rig.rt[MemoryStore].replace_memory(SCOPE, found, record("new plane", "1"))
    await rig.index()
    assert (await by_words(rig, "ferry")).total == 0
    assert (await by_words(rig, "plane")).total == 1
    key, vector = rig.keys.memory(rig.rt[MemoryStore].mid(SCOPE, "1")), rig.keys.vector(rig.rt[MemoryStore].mid(SCOPE, "1"))
    for name in ("u", "s", "ns", "tp", "en", "e"):
        assert not await rig.rt.client.hexists(key, name)
        assert not await rig.rt.client.hexists(vector, name)
    distances = {hit.mid: hit.value for hit in (await by_vector(rig, "new plane")).hits}
    assert next(iter(distances.values())) < 0.01


async def test_deleted_memory_is_removed_from_every_index(rig: Rig) -> None:
    one, two = record("ferry one"), record("ferry two")
    await rig.remember(one, two)
    assert await rig.rt[MemoryStore].delete_records(SCOPE, [one, one]) == 1
    assert await rig.rt[MemoryStore].delete_records(SCOPE, [one]) == 0
    assert await rig.rt[MemoryStore].delete_records(SCOPE, []) == 0
    assert await rig.rt[MemoryStore].get(SCOPE, [one.id]) == [None]
    assert (await by_words(rig, "ferry")).total == 1
    assert (await by_vector(rig, "ferry")).total == 1


async def test_background_write_cannot_restore_a_deleted_memory(rig: Rig) -> None:
    one = record("ferry")
    await rig.remember(one)
    await rig.rt[MemoryStore].delete_records(SCOPE, [one])
    assert await rig.rt[MemoryStore].write(SCOPE, [one], background=True) == ["buried"]
    assert await rig.rt[MemoryStore].write(SCOPE, [record("other words", one.id), record("two")], background=True) == ["buried", "new"]
    assert await rig.rt[MemoryStore].get(SCOPE, [one.id]) == [None]
    ttl = await rig.rt.client.ttl(rig.keys.tombstone(rig.rt[MemoryStore].mid(SCOPE, one.id)))
    assert 29 * 86400 < ttl <= 30 * 86400
    # A new write on purpose succeeds, and a late background write leaves it unchanged.
    assert await rig.rt[MemoryStore].write(SCOPE, [one]) == ["new"]
    assert await rig.rt[MemoryStore].write(SCOPE, [one], background=True) == ["same"]


async def test_vector_computed_before_a_deletion_is_not_written(rig: Rig) -> None:
    one = record("ferry")
    await rig.rt[MemoryStore].write(SCOPE, [one])
    (claim,) = await rig.claim(M)
    (job,), _ = await rig.rt[MemoryStore].index_jobs([claim.member])
    item = IndexEntry(job.mid, job.version, claim.lease, np.ones(384, np.float32), "late")
    await rig.rt[MemoryStore].delete_records(SCOPE, [one])
    assert await rig.rt[MemoryStore].write_index([item]) == [False]
    assert await rig.raw_keys() <= {"wake", "cfg", "due:follow", f"mt:{job.mid}"}
    # Deleted and written again: the late vector belongs to the deleted memory.
    await rig.rt[MemoryStore].write(SCOPE, [one])
    assert await rig.rt[MemoryStore].write_index([item]) == [False]
    assert (await by_vector(rig, "ferry")).total == 0
    assert job.mid in await rig.marks(M)


async def test_vector_of_outdated_text_is_not_written(rig: Rig) -> None:
    await rig.rt[MemoryStore].write(SCOPE, [record("old", "1")])
    (claim,) = await rig.claim(M)
    (job,), _ = await rig.rt[MemoryStore].index_jobs([claim.member])
    await rig.rt[MemoryStore].write(SCOPE, [record("new", "1")])
    assert await rig.rt[MemoryStore].write_index([IndexEntry(job.mid, job.version, claim.lease, np.ones(384, np.float32), "old")]) == [
        False
    ]
    assert (await by_words(rig, "old")).total == 0
    assert len(await rig.claim(M)) == 1, "it stays due"


async def test_replace_fails_if_the_version_changed(rig: Rig) -> None:
    old = record("old", "1")
    await rig.rt[MemoryStore].write(SCOPE, [old])
    found = await rig.rt[MemoryStore].require(SCOPE, "1")
    assert await rig.rt[MemoryStore].replace_memory(SCOPE, found, record("new", "1"))
    assert not await rig.rt[MemoryStore].replace_memory(SCOPE, found, record("newer", "1"))
    await rig.rt[MemoryStore].delete_records(SCOPE, [old])
    assert not await rig.rt[MemoryStore].replace_memory(SCOPE, found, record("newer", "1"))
    assert await rig.rt[MemoryStore].find(SCOPE, ["1"]) == [None]
    assert await rig.rt[MemoryStore].find(Scope("other"), ["1"]) == [None]


async def test_writes_and_deletes_handle_large_batches_and_repeated_ids(rig: Rig) -> None:
    many = [record(f"memory number {number}", str(number)) for number in range(1001)]
    assert await rig.rt[MemoryStore].write(SCOPE, many) == ["new"] * 1001
    assert await rig.rt[MemoryStore].write(SCOPE, [record("a", "x"), record("b", "x"), record("b", "x")]) == ["new", "changed", "same"]
    assert (await by_words(rig, "memory")).total == 1001
    assert await rig.rt[MemoryStore].delete_records(SCOPE, many) == 1001
    assert (await by_words(rig, "memory")).total == 0


async def test_same_id_in_two_tenants_is_two_memories(rig: Rig) -> None:
    other = Scope("other")
    await rig.rt[MemoryStore].write(SCOPE, [record("mine ferry", "1")])
    await rig.rt[MemoryStore].write(other, [record("theirs ferry", "1")])
    assert (await by_words(rig, "ferry")).total == (await by_words(rig, "ferry", other)).total == 1
    assert await rig.rt[MemoryStore].delete_records(other, [record("theirs ferry", "1")]) == 1
    assert (await rig.rt[MemoryStore].get(SCOPE, ["1"]))[0] is not None


def said(text: str, session_id: str = "s", **more: object) -> MemoryRecord:
    return record(text, f"{session_id}-{text}", memory_type="message", session_id=session_id, **more)


async def test_message_is_found_by_words_of_its_neighbors(rig: Rig) -> None:
    for text in ("where did you go", "to the harbour", "with whom"):
        await rig.remember(said(text))
    assert (await by_words(rig, "harbour")).total == 3
    middle = await rig.rt[MemoryStore].get(SCOPE, ["s-to the harbour"])
    jobs, gone = await rig.rt[MemoryStore].index_jobs([rig.rt[MemoryStore].mid(SCOPE, "s-to the harbour"), "f" * 32])
    assert gone == ["f" * 32]
    assert [r.text for r in jobs[0].before] == ["where did you go"]
    assert [r.text for r in jobs[0].after] == ["with whom"]
    assert middle[0] is not None
    # A deleted neighbor's words no longer match.
    await rig.rt[MemoryStore].delete_records(SCOPE, [middle[0]])
    await rig.index()
    assert (await by_words(rig, "harbour")).total == 0


async def test_reassigned_message_no_longer_adds_words_to_its_neighbors(rig: Rig) -> None:
    for text in ("where", "harbour", "whom"):
        await rig.remember(said(text))
    found = await rig.rt[MemoryStore].require(SCOPE, "s-harbour")
    assert await rig.rt[MemoryStore].replace_memory(SCOPE, found, found.record.model_copy(update={"user_id": "another"}))
    await rig.index()
    assert (await by_words(rig, "harbour")).total == 1
    order = rig.keys.order(rig.sid(SessionRef("s")))
    assert await rig.rt.client.zcard(order) == 2


async def test_messages_of_different_sessions_are_not_neighbors(rig: Rig) -> None:
    await rig.remember(said("ferry", "a"), said("plane", "b"), said("train", "a", user_id="u"), said("tram", "a", namespace="n"))
    for word in ("ferry", "plane", "train", "tram"):
        assert (await by_words(rig, word)).total == 1


async def test_concurrent_writes_and_indexing_end_with_current_vectors(rig: Rig) -> None:
    async def write(number: int) -> None:
        for turn in range(5):
            await rig.rt[MemoryStore].write(SCOPE, [record(f"turn {turn} of word{number}", str(number))])

    async def work() -> None:
        for _ in range(10):
            await rig.work(M)
            await asyncio.sleep(0)

    await gathered([*(write(number) for number in range(20)), *(work() for _ in range(3))])
    await rig.index()
    assert await rig.marks(M) == {}
    for number in range(20):
        (best, *_) = (await by_vector(rig, f"turn 4 of word{number}", 1)).hits
        assert best.value < 0.01
        assert best.mid == rig.rt[MemoryStore].mid(SCOPE, str(number))


@pytest.mark.parametrize("vector_type", ["FLOAT16", "FLOAT32"])
@pytest.mark.parametrize("algorithm", ["FLAT", "HNSW"])
async def test_vector_search_works_with_each_algorithm_and_vector_type(make_rig, algorithm: str, vector_type: str) -> None:
    async with make_rig(VECTOR_ALGORITHM=algorithm, VECTOR_TYPE=vector_type) as rig:
        await rig.remember(record("a ferry to the island"), record("tax forms"))
        hits = await by_vector(rig, "a ferry to the island")
        assert hits.total == 2
        assert hits.hits[0].value < 0.001
        assert hits.hits[0].value <= hits.hits[1].value <= 2


async def test_new_vector_type_gets_its_own_index_and_reembeds_all(make_rig, rig: Rig) -> None:
    await rig.rt[Reindexer].reindex_for_model()
    await rig.remember(record("ferry"), record("plane"))
    prefix = rig.settings.redis.key_prefix
    async with make_rig(KEY_PREFIX=prefix, VECTOR_TYPE="FLOAT32") as other:
        assert (await by_vector(other, "ferry")).total == 0
        assert await other.rt[Reindexer].reindex_for_model() == 2
        assert await other.rt[Reindexer].reindex_for_model() == 0
        await other.index()
        assert (await by_vector(other, "ferry")).total == 2
