"""Test embeddings over real HTTP, including dimensions, batches, rejections and server faults."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import numpy as np
import pytest

from agent_memory.foundation.core.errors import ModelAnswerInvalid, ModelUnavailable
from agent_memory.foundation.core.settings import Settings
from agent_memory.foundation.llm.base import EmbeddingModel
from agent_memory.foundation.llm.openai.embeddings import OpenAIEmbedder
from agent_memory.foundation.llm.tokens import TokenCounter
from tests.support.lookalike import Lookalike, embed

At = Callable[..., Settings]


async def test_vectors_are_returned_in_the_order_of_the_texts(lookalike: Lookalike, at: At) -> None:
    embedder = await OpenAIEmbedder.open(at())
    assert isinstance(embedder, EmbeddingModel)
    assert (embedder.model, embedder.dimensions) == ("text-embedding-3-small", 1536)
    texts = ["a dog by the river", "", "tax forms", "\ud800 surrogate"]
    lookalike.set_fault("shuffled")
    rows = await embedder.embed(texts)
    np.testing.assert_allclose(rows[0], embed(texts[0], 1536), atol=1e-6)
    np.testing.assert_allclose(rows[2], embed(texts[2], 1536), atol=1e-6)
    assert rows.dtype == np.float32
    assert "dimensions" not in lookalike.bodies("embeddings")[0]
    assert (await embedder.embed([])).shape == (0, 1536)
    assert lookalike.calls["embeddings"] == 1
    await embedder.close()


async def test_large_embedding_call_is_split_into_batches(lookalike: Lookalike, at: At) -> None:
    embedder = await OpenAIEmbedder.open(at())
    texts = [f"text number {number}" for number in range(600)]
    rows = await embedder.embed(texts)
    assert [len(body["input"]) for body in lookalike.bodies("embeddings")] == [256, 256, 88]
    np.testing.assert_allclose(rows[599], embed(texts[599], 1536), atol=1e-6)
    await embedder.close()


async def test_dimension_is_configured_known_probed_or_default(lookalike: Lookalike, at: At) -> None:
    for given, expected, probes in (
        ({"EMBEDDING_DIMENSIONS": 256}, 256, 0),
        ({"EMBEDDING_MODEL": "text-embedding-3-large"}, 3072, 0),
        ({"EMBEDDING_MODEL": "ollama/nomic-embed-text:latest"}, 768, 0),
        ({"EMBEDDING_MODEL": "made-up"}, 1536, 1),
    ):
        lookalike.forget()
        embedder = await OpenAIEmbedder.open(at(**given))
        assert embedder.dimensions == expected
        assert lookalike.calls["embeddings"] == probes
        await embedder.close()


@pytest.mark.parametrize("fault", ["500", "html", "401", "404", "null"])
async def test_failed_dimension_probe_falls_back_to_the_default_with_a_warning(
    lookalike: Lookalike, at: At, fault: str, caplog: pytest.LogCaptureFixture
) -> None:
    lookalike.set_fault(fault)
    embedder = await OpenAIEmbedder.open(at(EMBEDDING_MODEL="made-up"))
    assert embedder.dimensions == 1536
    [entry] = [entry for entry in caplog.records if "dimensions unknown" in entry.message]
    assert "EMBEDDING_DIMENSIONS" in vars(entry)["hint"]
    await embedder.close()


async def test_configured_dimension_is_requested_and_dropped_if_refused(lookalike: Lookalike, at: At) -> None:
    embedder = await OpenAIEmbedder.open(at(EMBEDDING_DIMENSIONS=1536))
    await embedder.embed(["x"])
    assert lookalike.bodies("embeddings")[0]["dimensions"] == 1536
    lookalike.forget()
    lookalike.set_fault("reject_dimensions")
    for _ in range(2):
        assert (await embedder.embed(["one more"])).shape == (1, 1536)
    assert "dimensions" not in lookalike.bodies("embeddings")[-1]
    await embedder.close()
    short = await OpenAIEmbedder.open(at(EMBEDDING_DIMENSIONS=256))
    with pytest.raises(ModelAnswerInvalid, match="EMBEDDING_DIMENSIONS=1536"):
        await short.embed(["x"])
    await short.close()


async def test_server_without_base64_gets_float_requests(lookalike: Lookalike, at: At) -> None:
    lookalike.set_fault("reject_base64")
    embedder = await OpenAIEmbedder.open(at())
    for _ in range(2):
        np.testing.assert_allclose((await embedder.embed(["a dog"]))[0], embed("a dog", 1536), atol=1e-6)
    assert [body["encoding_format"] for body in lookalike.bodies("embeddings")] == ["base64", "float", "float"]
    await embedder.close()


async def test_long_texts_are_cut_to_the_models_limit(lookalike: Lookalike, at: At, counter: TokenCounter) -> None:
    embedder = await OpenAIEmbedder.open(at(), counter=counter)
    long = "the river near Bonn is cold " * 5000
    await embedder.embed([long, "short"])
    sent = lookalike.bodies("embeddings")[0]["input"]
    assert 8000 < counter.count(sent[0]) <= 8191
    assert sent[1] == "short"
    lookalike.forget()
    lookalike.set_fault("reject_long")
    await embedder.embed([long])
    await embedder.embed([long])
    assert len(lookalike.bodies("embeddings")[-1]["input"][0]) <= lookalike.max_input_chars
    assert lookalike.calls["embeddings"] < 8
    await embedder.close()
    without_counter = await OpenAIEmbedder.open(at())
    lookalike.forget()
    await without_counter.embed(["長い文" * 20_000])
    assert len(lookalike.bodies("embeddings")[0]["input"][0]) <= 3 * 8191
    await without_counter.close()


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("wrong_dimension", "dimension"),
        ("nan", "not_finite"),
        ("zero", "zero_vector"),
        ("short_batch", "count"),
        ("ragged", "ragged"),
        ("html", "unreadable"),
        ("null", "unreadable"),
        ("garbage_body", "unreadable"),
        ("400", "refused"),
    ],
)
async def test_invalid_embedding_answers_raise_with_their_reason(lookalike: Lookalike, at: At, fault: str, reason: str) -> None:
    embedder = await OpenAIEmbedder.open(at())
    lookalike.set_fault(fault)
    with pytest.raises(ModelAnswerInvalid) as caught:
        await embedder.embed(["a dog", "a cat"])
    assert caught.value.data["reason"] == reason
    if fault == "wrong_dimension":
        assert "EMBEDDING_DIMENSIONS=1544" in caught.value.message
    await embedder.close()


@pytest.mark.parametrize(("ending", "hints"), [("", True), ("/v1", False)])
async def test_address_without_version_gets_a_hint_on_404(lookalike: Lookalike, at: At, ending: str, hints: bool) -> None:
    lookalike.set_fault("404")
    url = lookalike.url.removesuffix("/v1") + ending
    embedder = await OpenAIEmbedder.open(at(OPENAI_BASE_URL=url, EMBEDDING_DIMENSIONS=8))
    with pytest.raises(ModelUnavailable) as caught:
        await embedder.embed(["a dog"], timeout=5)
    assert ("end in /v1?" in caught.value.message) is hints
    await embedder.close()


@pytest.mark.parametrize(("fault", "reason"), [("500", "server_error"), ("429", "rate_limit"), ("401", "auth"), ("404", "not_found")])
async def test_failing_embedding_server_is_unavailable_with_a_reason(lookalike: Lookalike, at: At, fault: str, reason: str) -> None:
    embedder = await OpenAIEmbedder.open(at())
    lookalike.set_fault(fault)
    with pytest.raises(ModelUnavailable) as caught:
        await embedder.embed(["a dog"], timeout=5)
    assert caught.value.data["reason"] == reason
    assert lookalike.calls["embeddings"] == 1
    await embedder.close()


async def test_queries_fail_fast_while_the_server_hangs(lookalike: Lookalike, at: At) -> None:
    embedder = await OpenAIEmbedder.open(at())
    lookalike.set_fault("timeout")
    reasons: list[str] = []
    for _ in range(6):
        with pytest.raises(ModelUnavailable) as caught:
            await embedder.embed(["a dog"], timeout=0.3)
        reasons.append(caught.value.data["reason"])
    assert reasons[:3] == ["timeout"] * 3
    assert "breaker_open" in reasons
    assert lookalike.calls["embeddings"] < 6
    lookalike.set_fault(None)

    async with asyncio.timeout(20):
        while True:
            try:
                await embedder.embed(["a dog"], timeout=5)
                break
            except ModelUnavailable:
                await asyncio.sleep(0.05)
    await embedder.close()


async def test_query_does_not_wait_behind_background_calls(lookalike: Lookalike, at: At) -> None:
    embedder = await OpenAIEmbedder.open(at(MODEL_MAX_CONCURRENT_CALLS=1))
    lookalike.set_fault("timeout", times=1)
    background = asyncio.create_task(embedder.embed(["background"]))
    await lookalike.wait_for_call("embeddings")
    assert (await embedder.embed(["query"], timeout=10)).shape == (1, 1536)
    assert not background.done()
    background.cancel()
    await asyncio.gather(background, return_exceptions=True)
    await embedder.close()


async def test_api_key_is_not_sent_to_another_address(lookalike: Lookalike, at: At) -> None:
    embedder = await OpenAIEmbedder.open(at(OPENAI_BASE_URL="http://elsewhere.invalid/v1", EMBEDDING_BASE_URL=lookalike.url))
    await embedder.embed(["x"])
    assert lookalike.requests[-1].headers["authorization"] == "Bearer not-needed"
    await embedder.close()
