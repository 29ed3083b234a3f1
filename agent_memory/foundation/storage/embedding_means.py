"""Store the mean vector of each embedding model. A stored mean never changes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from redis.asyncio import Redis

from agent_memory.foundation.storage.connection import read, write
from agent_memory.foundation.storage.keyspace import Keys
from agent_memory.foundation.storage.search.indexes import VectorSpec


class EmbeddingMeans:
    def __init__(self, client: Redis, keys: Keys, spec: VectorSpec) -> None:
        self._client = client
        self._key = keys.config
        self._field = f"mean {spec.digest}"

    async def load_mean(self) -> NDArray[np.float32] | None:
        (stored,) = await read(self._client, lambda pipe: pipe.hget(self._key, self._field))
        return None if stored is None else np.frombuffer(stored, dtype="<f4").astype(np.float32)

    async def keep_mean(self, mean: NDArray[np.float32]) -> NDArray[np.float32]:
        """Store the mean unless one already exists. Return the stored mean."""
        await write(self._client, lambda pipe: pipe.execute_command("HSETNX", self._key, self._field, mean.astype("<f4").tobytes()))
        stored = await self.load_mean()
        return mean if stored is None else stored
