"""Test prefixes and mean vectors of embedding models, and how they are stored."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import numpy as np
import pytest

from agent_memory.foundation.core.errors import ModelUnavailable
from agent_memory.foundation.llm.base import Vectors
from agent_memory.foundation.llm.embedding_checks import unit_rows
from agent_memory.foundation.llm.profiles import ModelProfile, centered, probe_sentences, profile_of
from agent_memory.foundation.llm.wrappers.caching import CachingEmbedder
from agent_memory.foundation.llm.wrappers.profiled import ProfiledEmbedder
from tests.support.rig import MakeRig


class SkewedModel:
    """A model whose vectors all share a large common component."""

    model, dimensions = "skewed", 64

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.away = False

    async def embed(self, texts: Sequence[str], *, timeout: float | None = None) -> Vectors:
        if self.away:
            raise ModelUnavailable("it is away")
        self.texts += texts
        await asyncio.sleep(0)
        rows = [np.random.default_rng(list(text.encode())).normal(0, 1, 64) + 3.0 for text in texts]
        return unit_rows(rows, count=len(texts), dimensions=64, model="skewed")

    async def close(self) -> None:
        pass


def profiled(model: SkewedModel, profile: ModelProfile | None = None) -> ProfiledEmbedder:
    return ProfiledEmbedder(CachingEmbedder(model, entries=100), profile or profile_of(model.model))


async def test_queries_and_documents_get_their_prefixes() -> None:
    model = SkewedModel()
    embedder = profiled(model, ModelProfile(prefixes=("ask: ", "found: ")))
    assert embedder.missing(["tea"], role="query") == ["ask: tea"]
    await embedder.embed(["tea"], role="query")
    await embedder.embed(["tea"])
    assert model.texts == ["ask: tea", "found: tea"]
    assert embedder.missing(["tea"], role="query") == []


async def test_centering_separates_unrelated_texts_of_an_unknown_model() -> None:
    model = SkewedModel()
    raw = await model.embed(["tea", "a tax form"])
    rows = await profiled(model).embed(["tea", "a tax form"])
    assert raw[0] @ raw[1] > 0.8
    assert abs(rows[0] @ rows[1]) < 0.4
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-5)


async def test_mean_is_estimated_once_for_concurrent_calls() -> None:
    model = SkewedModel()
    embedder = profiled(model)
    await asyncio.gather(*(embedder.embed([f"text {number}"]) for number in range(20)))
    assert sum(text == probe_sentences()[0] for text in model.texts) == 1


async def test_mean_is_estimated_again_after_a_model_outage() -> None:
    model = SkewedModel()
    model.away = True
    embedder = profiled(model)
    with pytest.raises(ModelUnavailable):
        await embedder.embed(["tea"], timeout=5)
    model.away = False
    assert (await embedder.embed(["tea"])).shape == (1, 64)


async def test_adopted_vectors_equal_own_ones() -> None:
    model = SkewedModel()
    embedder = profiled(model)
    adopted = await embedder.adopt(await model.embed(["tea"]))
    np.testing.assert_allclose(adopted, await embedder.embed(["tea"]), atol=1e-6)


def test_centering_the_mean_itself_keeps_length_1() -> None:
    mean = np.zeros(4, dtype=np.float32)
    mean[0] = 1.0
    assert centered(mean[np.newaxis], mean).tolist() == [[1.0, 0.0, 0.0, 0.0]]


async def test_processes_of_one_store_share_the_estimated_mean(make_rig: MakeRig) -> None:
    async with make_rig(embedder=SkewedModel()) as first:
        await first.rt.embedder.embed(["tea"])
        kept = {name: value for name, value in (await first.rt.client.hgetall(first.keys.config)).items() if name.startswith(b"mean ")}
        assert [len(value) for value in kept.values()] == [4 * 64]
        name = next(iter(kept))
        await first.rt.client.hset(first.keys.config, name, np.zeros(64, dtype="<f4").tobytes())
        model = SkewedModel()
        async with make_rig(embedder=model, KEY_PREFIX=first.settings.redis.key_prefix) as second:
            rows = await second.rt.embedder.embed(["tea"])
            np.testing.assert_allclose(rows, await model.embed(["tea"]), atol=1e-6)
            assert probe_sentences()[0] not in model.texts


async def test_store_keeps_its_local_model_until_the_operator_names_one(make_rig: MakeRig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LOCAL_MODEL", raising=False)
    async with make_rig() as rig:
        await rig.rt.client.hset(rig.keys.config, "model", "all-MiniLM-L6-v2")
        prefix = rig.settings.redis.key_prefix
        async with make_rig(KEY_PREFIX=prefix) as kept:
            assert kept.rt.settings.models.local_model == "all-MiniLM-L6-v2"
        async with make_rig(KEY_PREFIX=prefix, LOCAL_MODEL="multilingual-e5-small") as changed:
            assert changed.rt.settings.models.local_model == "multilingual-e5-small"
