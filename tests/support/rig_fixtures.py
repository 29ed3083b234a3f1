"""Provide fixtures for tests below the API. Import them in conftest files.

Session fixtures are in tests/conftest.py, because pytest would open an imported one once for each
conftest file.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from agent_memory.foundation.core.settings import load_settings, variables
from agent_memory.foundation.llm.base import EmbeddingModel, Reranker
from agent_memory.foundation.llm.openai.chat import OpenAIChat
from agent_memory.foundation.llm.tokens import TokenCounter
from tests.support.lookalike import Lookalike
from tests.support.rig import MakeRig, Rig, open_rig

__all__ = ["chat", "make_chat", "make_rig", "no_settings_around", "rig"]


@pytest.fixture(autouse=True)
def no_settings_around(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the developer's settings out of the tests."""
    for name in variables():
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NEIGHBOURS_AFTER_SECONDS", "0")  # see tests/conftest.py


@pytest.fixture
def make_rig(redis_url: str, local: EmbeddingModel, counter: TokenCounter) -> MakeRig:
    """Open runtimes with `async with make_rig(chat=…, SETTING=…) as rig`."""

    def make(
        chat: OpenAIChat | None = None, reranker: Reranker | None = None, embedder: EmbeddingModel | None = None, **overrides: Any
    ) -> AbstractAsyncContextManager[Rig]:
        return open_rig(redis_url, embedder or local, counter, chat, reranker, **overrides)

    return make


@pytest.fixture
async def rig(make_rig: MakeRig) -> AsyncGenerator[Rig]:
    """Open a runtime without a language model."""
    async with make_rig() as one:
        yield one


@pytest.fixture
async def make_chat(lookalike: Lookalike, counter: TokenCounter) -> AsyncGenerator[Callable[..., Awaitable[OpenAIChat]]]:
    """Create chat clients for the look-alike with `await make_chat(SETTING=…)`."""
    opened: list[OpenAIChat] = []

    async def make(**overrides: Any) -> OpenAIChat:
        given = {"OPENAI_BASE_URL": lookalike.url, "OPENAI_API_KEY": "sk-test-0000", "MODEL_TIMEOUT_SECONDS": 10}
        opened.append(await OpenAIChat.open(load_settings(**(given | overrides)), counter=counter))
        return opened[-1]

    yield make
    for model in opened:
        await model.close()


@pytest.fixture
async def chat(lookalike: Lookalike, counter: TokenCounter) -> AsyncGenerator[OpenAIChat]:
    """Create a chat client for the look-alike."""
    settings = load_settings(OPENAI_BASE_URL=lookalike.url, OPENAI_API_KEY="sk-test-0000", MODEL_TIMEOUT_SECONDS=10)
    model = await OpenAIChat.open(settings, counter=counter)
    yield model
    await model.close()
