"""Load the local model and the token encoding once per process, because they need 300 MB and a CPU second."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from agent_memory.foundation.core.settings import Settings
from agent_memory.foundation.llm import providers, tokens
from agent_memory.foundation.llm.base import EmbeddingModel, Vectors
from agent_memory.foundation.llm.local.embedder import LocalEmbedder
from agent_memory.foundation.llm.wrappers.base import EmbedderWrapper

_embedders: dict[tuple[object, ...], LocalEmbedder] = {}


async def shared_embedder(settings: Settings) -> LocalEmbedder:
    """Return the local model of these settings; nobody closes it."""
    models = settings.models
    key = (models.local_model, models.local_threads, models.local_precision)
    if key not in _embedders:
        _embedders[key] = await LocalEmbedder.open(settings)
    return _embedders[key]


class _Shared(EmbedderWrapper):
    """Wrap the model for a runtime, whose end does not close it."""

    @classmethod
    async def open(cls, settings: Settings) -> EmbeddingModel:
        return cls(await shared_embedder(settings))

    async def embed(self, texts: Sequence[str], *, timeout: float | None = None) -> Vectors:
        return await self._inner.embed(texts, timeout=timeout)

    async def close(self) -> None:
        pass


def share_models() -> None:
    """Make all runtimes of this process share one local model, and all token counters one encoding."""
    tokens.load_encoding = functools.cache(tokens.load_encoding)
    providers.LocalEmbedder = _Shared  # pyright: ignore[reportPrivateImportUsage, reportAttributeAccessIssue]
