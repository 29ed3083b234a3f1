"""Test that searches use RESP2 unless it would hide a warning, with the same results as RESP3."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import redis.asyncio

from agent_memory.features.memories.store import MemoryStore
from agent_memory.foundation.storage import connection
from agent_memory.foundation.storage.connection import Pipe, connect, read
from agent_memory.foundation.storage.search import filters, list_replies
from agent_memory.foundation.storage.search.list_replies import SearchReader, answers_in_lists
from agent_memory.foundation.storage.search.results import Hits, parse_hits, parse_listed
from agent_memory.foundation.text.terms import query_terms
from agent_memory_client.models import SearchRequest
from tests.support.rig import SCOPE, Rig, record


def of_vectors(rig: Rig, pipe: Pipe, text: str, fields: Sequence[str] = (), *, past: bool = False) -> None:
    vector = np.frombuffer(text.ljust(64).encode()[:64], np.uint8).astype(np.float32)
    whole = np.zeros(rig.rt.embedder.dimensions, np.float32)
    whole[: len(vector)] = vector
    rig.rt[MemoryStore].queue_nearest(pipe, filters.where(SCOPE), whole, 5, fields, past=past)


async def test_resp2_and_resp3_return_the_same_results(rig: Rig) -> None:
    await rig.remember(*(record(f"Ada has violin {number}", f"m{number}") for number in range(8)))
    await rig.remember(record("Ada has no violin", "m3"))
    store, clause, terms = rig.rt[MemoryStore], filters.where(SCOPE), query_terms("violin")

    def build(pipe: Pipe) -> None:
        for fields in ((), ("c",), ("c", "la")):
            of_vectors(rig, pipe, "violin", fields)
            store.queue_words(pipe, clause, terms, 5, fields=fields)
        store.queue_words(pipe, clause, query_terms("nothing"), 5)
        store.queue_words(pipe, clause, terms, 1)
        store.queue_words(pipe, clause, terms, 5, past=True)
        store.queue_count(pipe, clause)
        store.queue_matches(pipe, clause, store.mid(SCOPE, "m1"))
        store.queue_newest(pipe, clause, 0, 5)
        store.queue_newest(pipe, clause, 0, 5, past=True)

    lists = connect(rig.rt.redis_url, pool_size=2, command_timeout=5, protocol=2)
    told = [await read(client, build) for client in (rig.rt.client, lists)]
    await lists.aclose()
    maps, rows = ([parse_hits(reply) for reply in replies[:-2]] for replies in told)
    assert [(one.total, one.hits) for one in maps] == [(one.total, one.hits) for one in rows]
    assert [parse_listed(reply) for reply in told[0][-2:]] == [parse_listed(reply) for reply in told[1][-2:]]
    assert [len(one.names) for one in rows] == [5, 5, 5, 5, 5, 5, 0, 1, 1, 0, 1]
    assert rows[8].names[0].startswith("~")
    for field in (b"c", b"la"):
        assert [one.numbers(field) for one in maps] == [one.numbers(field) for one in rows]
    assert len(rows[4].numbers(b"la")) == 5
    assert Hits.of(3, rows[2].hits, distances=True).hits == rows[2].hits


def note_clients(monkeypatch: pytest.MonkeyPatch) -> list[redis.asyncio.Redis]:
    """Return a list that collects the Redis clients used by this task."""
    found: list[redis.asyncio.Redis] = []
    exchange, task = connection.exchange, asyncio.current_task()

    async def noted(client: redis.asyncio.Redis, commands: Any) -> list[Any]:
        if asyncio.current_task() is task:
            found.append(client)
        return await exchange(client, commands)

    monkeypatch.setattr(connection, "exchange", noted)
    return found


async def test_resp2_is_used_only_if_it_hides_no_warning(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    assert await answers_in_lists(rig.rt.client), "the engine of the tests is of the second generation"
    lists = connect(rig.rt.redis_url, pool_size=2, command_timeout=5, protocol=2)
    reader = SearchReader(rig.rt.client, lists)

    async def total(request: SearchRequest) -> int:
        clause = filters.where(SCOPE, request)
        return parse_hits((await reader(lambda pipe: rig.rt[MemoryStore].queue_count(pipe, clause)))[0]).total

    await rig.remember(record("Ada has a violin", topics=["music"]))
    everything = SearchRequest()
    begins = SearchRequest.model_validate({"topics": {"startswith": "mus"}})
    asked = note_clients(monkeypatch)
    assert await total(everything) == 1
    assert asked == [lists]
    # A prefix matches only as many values as the engine examines: only RESP3 reports that there are more.
    assert await total(begins) == 1
    assert asked == [lists, rig.rt.client]
    # If the engine returns partial results at its time limit, search again and from then on where it reports that.
    monkeypatch.setattr(list_replies, "_ASK_ON_TIMEOUT", ("FT.CONFIG", "GET", "TIMEOUT"))
    assert not await answers_in_lists(rig.rt.client)
    asked.clear()
    assert await total(everything) == 1
    assert await total(everything) == 1
    assert asked == [lists, rig.rt.client, rig.rt.client]
    await lists.aclose()
