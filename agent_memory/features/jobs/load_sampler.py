"""Sample each process's load and the installation's totals once a minute."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from prometheus_client import Metric
from ulid import ULID

from agent_memory.features.jobs.load_store import MINUTE, TEN_MINUTES, LoadStore, begin_of, bucket_name
from agent_memory.foundation.core.errors import AgentMemoryError, RedisUnavailable
from agent_memory.foundation.core.logs import get_logger
from agent_memory.foundation.core.metrics import MODEL_TOKENS, REQUEST_BUCKETS, REQUEST_SECONDS, REQUESTS
from agent_memory.foundation.foundation import Foundation
from agent_memory.foundation.storage.connection import Pipe, read
from agent_memory.foundation.storage.outbox import sum_backlogs
from agent_memory.foundation.storage.search.indexes import count_documents

log = get_logger(__name__)

# Write the counts for a minute this many seconds after the minute ends.
_LATE_SECONDS = 1.0
_CLOSE_SECONDS = 2.0
# Counting users reads a document for each new memory: about 30 ms for this many memories.
_MOST_NEW_MEMORIES = 20_000
_MONITORING = frozenset({"/v1/health", "/v1/ready", "/metrics"})
_STREAMS = ("/sse", "/mcp", "/live")


class LoadSampler:
    """Samples the load of this process. `buckets` contains all buckets of the store."""

    def __init__(self, buckets: Sequence[Foundation], store: LoadStore) -> None:
        self._buckets = buckets
        self._store = store
        self._name = str(ULID())
        self._written = _counted()

    async def sample(self) -> float:
        """Write a sample and return the seconds until the next one. Omit the totals if a bucket is unavailable.

        After RedisUnavailable, the next sample includes the counts from this one.
        """
        now = await self._store.now()
        at = now - 2 * _LATE_SECONDS
        counted = _counted()
        counts = counted - self._written  # a Counter keeps only positive differences
        totals: dict[int, dict[str, float]] = {}
        if await self._store.own_minute(at, self._name):
            with contextlib.suppress(RedisUnavailable):
                look = await self._look(at)
                totals = {step: {**look, "users": await self._active_users(begin_of(at, step))} for step in (MINUTE, TEN_MINUTES)}
            counts.update({"looks": 1, "well": int(not any([await bucket.watch.look() for bucket in self._buckets]))})
        # All processes write the same fields, so that a minute without requests is a 0 and not a gap.
        await self._store.add(at, {"requests": 0, "failed": 0, "model_tokens": 0, **counts}, totals)
        self._written = counted
        return MINUTE - now % MINUTE + _LATE_SECONDS

    async def _look(self, at: float) -> dict[str, float]:
        counts = Counter[str]()
        for bucket in self._buckets:
            for kind in ("memories", "sessions"):
                counts[kind] += await count_documents(bucket.client, bucket.schemas[kind].index.name)
        backlog = sum_backlogs([await bucket.outbox.backlog() for bucket in self._buckets]).values()
        return {
            "memories": counts["memories"],
            "sessions": counts["sessions"],
            "pending": sum(each.pending for each in backlog),
            "dead": sum(each.dead for each in backlog),
            "oldest_seconds": round(max((each.oldest_seconds for each in backlog), default=0.0), 3),
        }

    async def _active_users(self, since: int) -> int:
        users = 0
        for bucket in self._buckets:
            index = bucket.schemas["memories"].index.name
            owners = ("2", "@t", "@u")
            command = ["FT.AGGREGATE", index, f"@ra:[{since} +inf]", "LOAD", *owners, "LIMIT", "0", str(_MOST_NEW_MEMORIES)]
            command += ["FILTER", "exists(@u)", "GROUPBY", *owners, "GROUPBY", "0", "REDUCE", "COUNT", "0", "AS", "users", "DIALECT", "2"]

            def build(pipe: Pipe, command: Sequence[str] = tuple(command)) -> None:
                pipe.execute_command(*command)

            reply: Any = (await read(bucket.client, build))[0]
            users += sum(int(row[b"extra_attributes"][b"users"]) for row in reply[b"results"])
        return users


@asynccontextmanager
async def sampling(buckets: Sequence[Foundation], store: LoadStore) -> AsyncGenerator[None]:
    """Sample this process's load during the `async with` block, and once more at the end."""
    sampler = LoadSampler(buckets, store)
    running = asyncio.create_task(_sample_each_minute(sampler))
    try:
        yield
    finally:
        running.cancel()
        await asyncio.wait({running})
        with contextlib.suppress(AgentMemoryError, TimeoutError):
            async with asyncio.timeout(_CLOSE_SECONDS):
                await sampler.sample()


async def _sample_each_minute(sampler: LoadSampler) -> None:
    while True:
        seconds = float(MINUTE)
        try:
            seconds = await sampler.sample()
        except AgentMemoryError as error:
            log.info("load of this minute not written", error=error)
        except Exception:
            # Samples only inform people, so an error must not end the process.
            log.exception("load of this minute not written", retry_seconds=seconds)
        await asyncio.sleep(seconds)


def _counted() -> Counter[str]:
    counted = Counter[str]()
    for sample in _samples(REQUESTS):
        if sample.name.endswith("_total") and _is_call(sample.labels):
            counted["requests"] += int(sample.value)
            counted["failed"] += int(sample.value) if sample.labels["status"] >= "500" else 0
    counted["model_tokens"] = sum(int(sample.value) for sample in _samples(MODEL_TOKENS) if sample.name.endswith("_total"))
    # Each bucket in the histogram includes the requests in all smaller buckets.
    within = Counter[float]()
    for sample in _samples(REQUEST_SECONDS):
        if sample.name.endswith("_bucket") and _is_call(sample.labels):
            within[float(sample.labels["le"])] += int(sample.value)
    below = 0
    for number, bound in enumerate((*REQUEST_BUCKETS, float("inf"))):
        counted[bucket_name(number)] = within[bound] - below
        below = within[bound]
    return counted


def _samples(metric: Any) -> Any:
    families: list[Metric] = metric.collect()
    return (sample for family in families for sample in family.samples)


def _is_call(labels: dict[str, str]) -> bool:
    return labels["route"] not in _MONITORING and not (labels["method"] == "GET" and labels["route"].endswith(_STREAMS))
