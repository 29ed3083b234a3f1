"""Load the local model and the token encoding once per process, and embed each text only once."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from agent_memory.foundation.core.settings import Settings
from agent_memory.foundation.llm import providers, tokens
from agent_memory.foundation.llm.base import EmbeddingModel, Vectors
from agent_memory.foundation.llm.local.embedder import LocalEmbedder
from agent_memory.foundation.llm.wrappers.base import EmbedderWrapper

# Vectors of 1.5 KB.
_MOST_REMEMBERED = 30_000
_LONGEST_REMEMBERED = 4_000
_embedders: dict[tuple[object, ...], LocalEmbedder] = {}


async def shared_embedder(settings: Settings) -> LocalEmbedder:
    """Return the shared local model for these settings. It stays open."""
    models = settings.models
    key = (models.local_model, models.local_threads, models.local_precision)
    if key not in _embedders:
        _embedders[key] = await LocalEmbedder.open(settings)
    return _embedders[key]


class RememberingEmbedder(EmbedderWrapper):
    """Caches embeddings across runtimes, because many tests embed the same texts."""

    def __init__(self, inner: EmbeddingModel) -> None:
        super().__init__(inner)
        self._vectors: dict[str, Vectors] = {}

    @classmethod
    async def open(cls, settings: Settings) -> EmbeddingModel:
        """Return the shared caching embedder for these settings. It stays open."""
        model = await shared_embedder(settings)
        return _remembering.setdefault(model, cls(model))

    async def embed(self, texts: Sequence[str], *, timeout: float | None = None) -> Vectors:
        known = {text: vector for text in texts if (vector := self._vectors.get(text)) is not None}
        if missing := [text for text in dict.fromkeys(texts) if text not in known]:
            known |= zip(missing, await self._inner.embed(missing, timeout=timeout), strict=True)
            if len(self._vectors) > _MOST_REMEMBERED:
                self._vectors.clear()
            self._vectors |= {text: known[text] for text in missing if len(text) <= _LONGEST_REMEMBERED}
        return np.stack([known[text] for text in texts]) if known else await self._inner.embed(texts, timeout=timeout)

    async def close(self) -> None:
        """Do nothing, because the model outlives the runtime."""


_remembering: dict[LocalEmbedder, RememberingEmbedder] = {}


def share_models() -> None:
    """Share one local model and one token encoding among all runtimes in this process."""
    tokens.load_encoding = functools.cache(tokens.load_encoding)
    providers.LocalEmbedder = RememberingEmbedder  # pyright: ignore[reportPrivateImportUsage, reportAttributeAccessIssue]
