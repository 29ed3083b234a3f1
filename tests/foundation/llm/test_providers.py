"""Test which models the settings select, and how the server reports them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from agent_memory.foundation.core.errors import StartupError
from agent_memory.foundation.core.settings import Settings, load_settings
from agent_memory.foundation.llm.providers import open_models
from tests.support.lookalike import Lookalike

At = Callable[..., Settings]


async def test_without_a_key_all_models_are_local() -> None:
    models = await open_models(load_settings(LOCAL_MODEL="multilingual-e5-small"))
    assert models.chat is None
    assert models.embedder.dimensions == 384
    assert models.counter.count("hello world") == 2
    assert models.description == "embeddings multilingual-e5-small (local, 384 dimensions); summaries extractive (local); no key needed"
    await models.close()


async def test_one_server_serves_chat_and_embeddings(lookalike: Lookalike, at: At) -> None:
    url = lookalike.url.replace("http://", "http://me:hidden@")
    models = await open_models(at(OPENAI_BASE_URL=url, GENERATION_MODEL="my-model"))
    assert models.chat is not None
    assert models.chat.model == "my-model"
    assert (await models.embedder.embed(["x"])).shape == (1, 1536)
    assert models.description == f"embeddings text-embedding-3-small at {lookalike.url} (1536 dimensions); chat my-model at {lookalike.url}"
    await models.close()


async def test_unavailable_model_server_does_not_stop_the_start(lookalike: Lookalike, at: At) -> None:
    lookalike.stop()
    models = await open_models(at(EMBEDDING_MODEL="made-up"))
    assert models.embedder.dimensions == 1536
    await models.close()


async def test_chat_and_embedding_providers_can_differ(lookalike: Lookalike, at: At) -> None:
    chat_only = await open_models(at(EMBEDDING_PROVIDER="local"))
    assert chat_only.chat is not None
    assert chat_only.embedder.dimensions == 384
    await chat_only.close()
    embeddings_only = await open_models(at(MODEL_PROVIDER="local", EMBEDDING_PROVIDER="openai"))
    assert embeddings_only.chat is None
    assert embeddings_only.embedder.dimensions == 1536
    assert embeddings_only.description.endswith("summaries extractive (local)")
    await embeddings_only.close()


@pytest.mark.parametrize("given", [{"MODEL_PROVIDER": "openai"}, {"EMBEDDING_PROVIDER": "openai"}])
async def test_openai_provider_without_key_or_address_is_refused(given: dict[str, str]) -> None:
    with pytest.raises(StartupError, match="OPENAI_API_KEY"):
        await open_models(load_settings(**given))
