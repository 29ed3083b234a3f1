"""Apply a model's profile by adding prefixes and subtracting the mean vector."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import numpy as np

from agent_memory.foundation.core.errors import ModelUnavailable
from agent_memory.foundation.core.logs import get_logger
from agent_memory.foundation.llm.base import TextRole, Vectors
from agent_memory.foundation.llm.profiles import ModelProfile, centered, probe_sentences, shipped_mean
from agent_memory.foundation.llm.wrappers.base import EmbedderWrapper
from agent_memory.foundation.llm.wrappers.caching import CachingEmbedder
from agent_memory.foundation.storage.embedding_means import EmbeddingMeans

log = get_logger(__name__)


class ProfiledEmbedder(EmbedderWrapper):
    """An embedder that adds prefixes and subtracts the mean vector."""

    def __init__(self, inner: CachingEmbedder, profile: ModelProfile) -> None:
        super().__init__(inner)
        self._cache = inner
        self._profile = profile
        estimated = profile.mean == "probes"
        self._mean = shipped_mean(profile.mean) if profile.mean and not estimated else None
        self._estimated = estimated
        self._store: EmbeddingMeans | None = None
        self._estimating: asyncio.Task[Vectors] | None = None

    def keep_mean_in(self, store: EmbeddingMeans) -> None:
        """Set the store in which processes share an estimated mean."""
        self._store = store

    async def embed(self, texts: Sequence[str], *, role: TextRole = "document", timeout: float | None = None) -> Vectors:
        await self._have_mean(timeout)
        rows = await self._inner.embed([self._profile.prepared(text, role) for text in texts], timeout=timeout)
        return rows if self._mean is None else centered(rows, self._mean)

    async def adopt(self, rows: Vectors) -> Vectors:
        await self._have_mean(None)
        return rows if self._mean is None else centered(rows, self._mean)

    def missing(self, texts: Sequence[str], *, role: TextRole = "document") -> list[str]:
        return self._cache.missing([self._profile.prepared(text, role) for text in texts])

    async def close(self) -> None:
        if self._estimating is not None:
            self._estimating.cancel()
            await asyncio.gather(self._estimating, return_exceptions=True)
        await self._inner.close()

    async def _have_mean(self, timeout: float | None) -> None:
        if self._estimated and self._mean is None:
            self._mean = await self._shared_mean(timeout)

    async def _shared_mean(self, timeout: float | None) -> Vectors:
        """Estimate the mean once for all callers. The estimate continues if a caller times out."""
        if self._estimating is None or (self._estimating.done() and (self._estimating.cancelled() or self._estimating.exception())):
            self._estimating = asyncio.create_task(self._estimate())
        try:
            async with asyncio.timeout(timeout):
                return await asyncio.shield(self._estimating)
        except TimeoutError as error:
            raise ModelUnavailable(f"{self.model}: no answer within {timeout:g} s", reason="timeout") from error

    async def _estimate(self) -> Vectors:
        stored_mean = None if self._store is None else await self._store.load_mean()
        if stored_mean is not None and stored_mean.shape == (self.dimensions,):
            return stored_mean
        rows = await self._inner.embed([self._profile.prepared(text, "document") for text in probe_sentences()])
        mean = rows.mean(axis=0, dtype=np.float32)
        cosine = round(float(mean @ mean), 2)
        log.info("unrelated texts have similar vectors; subtracting their mean from all vectors", model=self.model, mean_cosine=cosine)
        return mean if self._store is None else await self._store.keep_mean(mean)
