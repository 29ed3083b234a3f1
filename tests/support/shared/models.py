"""Load the local model and the token encoding once per process (300 MB and a CPU second), and embed each text once per process."""

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
    """Return the local model of these settings; nobody closes it."""
    models = settings.models
    key = (models.local_model, models.local_threads, models.local_precision)
    if key not in _embedders:
        _embedders[key] = await LocalEmbedder.open(settings)
    return _embedders[key]


class RememberingEmbedder(EmbedderWrapper):
    """Embed each text once: tests use the same texts again and again, and every runtime starts with an empty cache."""

    def __init__(self, inner: EmbeddingModel) -> None:
        super().__init__(inner)
        self._vectors: dict[str, Vectors] = {}

    @classmethod
    async def open(cls, settings: Settings) -> EmbeddingModel:
        """Return the wrapper of these settings' local model; nobody closes it."""
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
        """Do nothing: the model outlives a runtime."""


_remembering: dict[LocalEmbedder, RememberingEmbedder] = {}


def share_models() -> None:
    """Make all runtimes of this process share one local model, and all token counters one encoding."""
    tokens.load_encoding = functools.cache(tokens.load_encoding)
    providers.LocalEmbedder = RememberingEmbedder  # pyright: ignore[reportPrivateImportUsage, reportAttributeAccessIssue]
