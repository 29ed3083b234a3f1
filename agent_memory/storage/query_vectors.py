"""Vectors of queries that were embedded lately, for other processes and for this one when it starts again.

A place holds one vector, and a query has its place by its digest: so many queries there may be, the cache is no larger, and no memory of
Redis needs to be kept watch over. What is in a place says whose it is: another query's vector is none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from redis.asyncio import Redis

from agent_memory.storage.connection import Pipe, redis_errors
from agent_memory.storage.indexes import VectorSpec
from agent_memory.storage.keys import Keys, digest

# Of 384 dimensions they take 7 MB, of 1,536 25 MB.
PLACES = 4096
_DIGEST_BYTES = 32


class QueryVectorStore:
    """Reads and writes them; they end after `seconds`. A tenant has its own, and so has each model."""

    def __init__(self, client: Redis, keys: Keys, spec: VectorSpec, *, seconds: int) -> None:
        self._client = client
        self._keys = keys
        self._spec = spec
        self._seconds = seconds

    @property
    def keeps(self) -> bool:
        """Whether anything is kept at all."""
        return self._seconds > 0

    def place(self, tenant: str, query: str) -> str:
        """The key of the place of a query."""
        return self._keys.query_vector(int(self._digest(tenant, query)[:8], 16) % PLACES)

    def queue(self, pipe: Pipe, tenant: str, query: str) -> None:
        """Asks for what is in the place of a query; `read` takes the reply."""
        pipe.execute_command("GET", self.place(tenant, query))

    def read(self, reply: Any, tenant: str, spoken: str) -> NDArray[np.float32] | None:
        """The vector of what is compared by meaning (`spoken`), None when that of something else is there, or nothing."""
        if not isinstance(reply, bytes) or reply[:_DIGEST_BYTES] != self._digest(tenant, spoken).encode():
            return None
        vector = np.frombuffer(reply, dtype=np.float32, offset=_DIGEST_BYTES)
        return vector if len(vector) == self._spec.dimensions else None

    def value(self, tenant: str, spoken: str, vector: NDArray[np.float32]) -> bytes:
        """What is written into a place."""
        return self._digest(tenant, spoken).encode() + vector.astype(np.float32).tobytes()

    async def write(self, values: Mapping[str, bytes]) -> None:
        """Fills places (keys), in one round trip. Raises RedisUnavailable."""
        with redis_errors():
            async with self._client.pipeline(transaction=False) as pipe:
                for place, value in values.items():
                    pipe.set(place, value, ex=self._seconds)
                await pipe.execute()

    def _digest(self, tenant: str, text: str) -> str:
        return digest("query", self._spec.model, str(self._spec.dimensions), tenant, text)
