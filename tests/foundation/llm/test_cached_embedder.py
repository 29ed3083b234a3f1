"""Test the cache and the batching in front of an embedder."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import numpy as np
import pytest

from agent_memory.foundation.core.errors import ModelAnswerInvalid, ModelUnavailable
from agent_memory.foundation.llm.base import EmbeddingModel, Vectors
from agent_memory.foundation.llm.wrappers.caching import SMALL, CachingEmbedder
from tests.support.lookalike import embed


class Recording:
    """An embedder that records its calls and delays them until `gate` is set."""

    model = "recording"
    dimensions = 16

    def __init__(self) -> None:
        self.calls: list[list[str]] = []
        self.timeouts: list[float | None] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.error: Exception | None = None
        self.closed = False

    async def embed(self, texts: Sequence[str], *, timeout: float | None = None) -> Vectors:
        self.calls.append(list(texts))
        self.timeouts.append(timeout)
        await self.gate.wait()
        if self.error is not None:
            raise self.error
        return np.stack([embed(text, self.dimensions) for text in texts])

    async def close(self) -> None:
        self.closed = True


async def test_repeated_text_is_embedded_once() -> None:
    inner = Recording()
    cached = CachingEmbedder(inner, entries=10)
    assert isinstance(cached, EmbeddingModel)
    rows = await cached.embed(["dog", "cat", "dog"])
    np.testing.assert_array_equal(rows[0], rows[2])
    rows[0] = 0.0  # a copy that the caller may change
    again = await cached.embed(["cat", "dog"])
    np.testing.assert_allclose(again[1], embed("dog", 16))
    assert inner.calls == [["dog", "cat"]]
    assert (await cached.embed([])).shape == (0, 16)


async def test_embedding_cache_is_bounded_and_can_be_disabled() -> None:
    inner = Recording()
    cached = CachingEmbedder(inner, entries=2)
    for text in ("a1", "b1", "a1", "c1", "a1", "b1"):
        await cached.embed([text])
    assert inner.calls == [["a1"], ["b1"], ["c1"], ["b1"]]
    off = CachingEmbedder(Recording(), entries=0)
    await off.embed(["x"])
    np.testing.assert_allclose((await off.embed(["x"]))[0], embed("x", 16))


async def test_concurrent_small_calls_are_batched_within_the_concurrency_limit() -> None:
    inner = Recording()
    inner.gate.clear()
    cached = CachingEmbedder(inner, entries=100, in_flight=1)
    first = [asyncio.create_task(cached.embed([f"text {number}"])) for number in range(3)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    later = [asyncio.create_task(cached.embed([text])) for text in ("text 1", "late a", "late b", *map(str, range(40)))]
    for _ in range(5):
        await asyncio.sleep(0)
    assert inner.calls == [["text 0", "text 1", "text 2"]]
    inner.gate.set()
    await asyncio.gather(*first, *later)
    assert inner.calls[1][:2] == ["late a", "late b"]
    assert all(len(call) <= SMALL for call in inner.calls)
    assert sum(map(len, inner.calls)) == 3 + 2 + 40


async def test_large_call_is_sent_alone_and_does_not_block_queries() -> None:
    inner = Recording()
    inner.gate.clear()
    cached = CachingEmbedder(inner, entries=100, in_flight=1)
    large = asyncio.create_task(cached.embed([f"text {number}" for number in range(50)]))
    await asyncio.sleep(0)
    small = asyncio.create_task(cached.embed(["query"], timeout=2))
    for _ in range(5):
        await asyncio.sleep(0)
    assert sorted(map(len, inner.calls)) == [1, 50]
    assert inner.timeouts == [None, 2]
    inner.gate.set()
    assert (await large).shape == (50, 16)
    assert (await small).shape == (1, 16)


async def test_cancelled_caller_does_not_cancel_a_shared_call() -> None:
    inner = Recording()
    inner.gate.clear()
    cached = CachingEmbedder(inner, entries=100)
    patient = asyncio.create_task(cached.embed(["shared", "mine"]))
    leaving = asyncio.create_task(cached.embed(["shared"]))
    with pytest.raises(ModelUnavailable):
        await cached.embed(["shared"], timeout=0.01)
    leaving.cancel()
    await asyncio.gather(leaving, return_exceptions=True)
    inner.gate.set()
    assert (await patient).shape == (2, 16)
    assert len(inner.calls) == 1


async def test_failure_reaches_every_caller_and_is_not_cached() -> None:
    inner = Recording()
    inner.error = ModelAnswerInvalid("not usable", reason="zero_vector")
    cached = CachingEmbedder(inner, entries=100)
    outcomes = await asyncio.gather(cached.embed(["a1"]), cached.embed(["a1", "b1"]), return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [ModelAnswerInvalid, ModelAnswerInvalid]
    assert outcomes[0] is not outcomes[1]
    assert isinstance(outcomes[0], ModelAnswerInvalid)
    assert outcomes[0].data["reason"] == "zero_vector"
    inner.error = None
    assert (await cached.embed(["a1"])).shape == (1, 16)


async def test_close_fails_running_and_waiting_calls() -> None:
    inner = Recording()
    inner.gate.clear()
    cached = CachingEmbedder(inner, entries=100, in_flight=1)
    under_way = asyncio.create_task(cached.embed(["a1"]))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    waiting = asyncio.create_task(cached.embed(["b1"]))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    await cached.close()
    for outcome in await asyncio.gather(under_way, waiting, return_exceptions=True):
        assert isinstance(outcome, ModelUnavailable)
    assert inner.closed
    with pytest.raises(ModelUnavailable):
        await cached.embed(["c1"])
