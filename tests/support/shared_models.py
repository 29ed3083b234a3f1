"""The local model and the token encoding, loaded once for all tests of a process: together they are 300 MB and a second of CPU."""

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
    """The real local model that these settings ask for; nobody closes it."""
    models = settings.models
    key = (models.local_model, models.local_threads, models.local_precision)
    if key not in _embedders:
        _embedders[key] = await LocalEmbedder.open(settings)
    return _embedders[key]


class _Shared(EmbedderWrapper):
    """What a runtime is handed: the end of the runtime does not close the model."""

    @classmethod
    async def open(cls, settings: Settings) -> EmbeddingModel:
        return cls(await shared_embedder(settings))

    async def embed(self, texts: Sequence[str], *, timeout: float | None = None) -> Vectors:
        return await self._inner.embed(texts, timeout=timeout)

    async def close(self) -> None:
        pass


def share_models() -> None:
    """From now on every runtime of this process has the same local model, and every token counter the same encoding."""
    tokens.load_encoding = functools.cache(tokens.load_encoding)
    providers.LocalEmbedder = _Shared  # pyright: ignore[reportPrivateImportUsage, reportAttributeAccessIssue]
