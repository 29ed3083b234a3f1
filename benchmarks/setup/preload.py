"""Fill a store using the server's own write code, without HTTP or a model."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import numpy as np

from agent_memory.features.memories.service import MemoryService
from agent_memory.foundation.api.principals import scope_of_work
from agent_memory.foundation.core.settings import load_settings
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.foundation.llm.base import Vectors
from agent_memory.runtime import Runtime, open_runtime
from agent_memory_client.models import MemoryRecord
from agent_memory_worker.memories.indexing import index_memories
from benchmarks.setup import corpus
from benchmarks.setup.model import DIMENSIONS
from tests.support.lookalike.answers import embed

PER_USER = 100
_BATCH = 500
_BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


class _Embedder:
    """Returns the same vectors as the embedding server without calling it."""

    model = "text-embedding-3-small"
    dimensions = DIMENSIONS

    async def embed(self, texts: Sequence[str], *, timeout: float | None = None) -> Vectors:
        return np.stack([embed(text, DIMENSIONS) for text in texts])

    async def close(self) -> None:
        """Do nothing."""


def memory(number: int) -> MemoryRecord:
    """Return memory number `number`. Each user has PER_USER memories."""
    owner, place = divmod(number, PER_USER)
    return MemoryRecord(
        id=f"bench-{number:08d}", text=corpus.fact(owner, place), user_id=corpus.user(owner), created_at=_BEGIN + timedelta(minutes=place)
    )


@dataclass(frozen=True, slots=True)
class Filled:
    """The seconds and Redis bytes that it took to fill a store.

    The bytes cover only the memories' records, indexes and bookkeeping data.
    """

    seconds: float
    redis_bytes: int


async def preload(redis_url: str, environment: dict[str, str], first: int, last: int) -> Filled:
    """Write and embed memories `first` to `last` (exclusive), and return the cost.

    If `first` is 0, the cost includes an empty store.
    """
    given = {name: value for name, value in environment.items() if name.startswith(("EMBEDDING_", "MODEL_"))}
    settings = load_settings(**{**given, "WORKER_INDEX_BATCH": str(_BATCH)})
    async with open_runtime(settings, redis_url) as opened:
        runtime = replace(opened, embedder=_Embedder())
        await _index(runtime)  # embed memories from earlier requests first, so that they do not count here
        before = await _used(runtime) if first else 0
        began = time.perf_counter()
        for start in range(first, last, _BATCH):
            await runtime[MemoryService].store(
                scope_of_work("default"), [memory(number) for number in range(start, min(start + _BATCH, last))]
            )
            await _index(runtime)
        return Filled(time.perf_counter() - began, await _used(runtime) - before)


async def _used(runtime: Runtime) -> int:
    return int((await runtime.client.info("memory"))["used_memory"])


async def _index(runtime: Runtime) -> None:
    while True:
        claimed = (await runtime.outbox.claim_each({DueKind.MEMORY: _BATCH}, lease_seconds=300, max_attempts=8))[DueKind.MEMORY]
        if isinstance(claimed, Exception):
            raise claimed
        if not claimed.claims:
            return
        await index_memories(runtime, claimed.claims)
