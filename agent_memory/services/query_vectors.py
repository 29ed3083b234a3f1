"""The vectors of queries: from this process' memory, else from what any process has left in Redis, else from the model.

Redis is asked on a round trip that a query with new words makes anyway, and written to after the answers.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from agent_memory.errors import AgentMemoryError
from agent_memory.llm.base import Embedder
from agent_memory.services.later import Later
from agent_memory.storage.connection import Pipe
from agent_memory.storage.query_vectors import QueryVectorStore

log = logging.getLogger(__name__)

_DELAY_SECONDS = 0.5
# Beyond so many that wait for Redis, vectors are not kept: they can be made again.
_MOST_WAITING = 500


class Remembering(Protocol):
    """The cache of this process."""

    def knows(self, text: str) -> bool: ...
    def offer(self, text: str, vector: NDArray[np.float32]) -> None: ...


class QueryVectors:
    """Gives them, and leaves new ones in Redis."""

    def __init__(
        self, store: QueryVectorStore, cache: Remembering, embedder_of: Callable[[str], Embedder], *, delay_seconds: float = _DELAY_SECONDS
    ) -> None:
        self._store = store
        self._cache = cache
        self._embedder_of = embedder_of
        self._waiting: dict[str, bytes] = {}
        self._later = Later(self.flush, "vectors of queries", delay_seconds=delay_seconds)

    def asking(self, tenant: str, query: str) -> Callable[[Pipe], None] | None:
        """Puts the question for a query's vector on a pipeline, where there may be one; `vector` takes the reply."""
        return (lambda pipe: self._store.queue(pipe, tenant, query)) if self._store.keeps else None

    async def vector(self, tenant: str, query: str, spoken: str, reply: Any, *, timeout: float) -> NDArray[np.float32]:
        """The vector of `spoken`, as which the query is compared. Raises what the embedder raises."""
        new = self._store.keeps and not self._cache.knows(spoken)
        if new and (kept := self._store.read(reply, tenant, spoken)) is not None:
            self._cache.offer(spoken, kept)
            return kept
        made = (await self._embedder_of(tenant).embed([spoken], timeout=timeout))[0]
        if new and len(self._waiting) < _MOST_WAITING:
            self._waiting[self._store.place(tenant, query)] = self._store.value(tenant, spoken, made)
            self._later.soon()
        return made

    async def flush(self) -> None:
        """Writes what waits; what Redis does not take is gone, and is made again when it is asked for."""
        values, self._waiting = self._waiting, {}
        if not values:
            return
        try:
            await self._store.write(values)
        except AgentMemoryError as error:
            log.warning("%d vectors of queries are not kept for other processes: %s", len(values), error)

    async def close(self) -> None:
        """Writes what waits, for two seconds at most."""
        await self._later.close()
