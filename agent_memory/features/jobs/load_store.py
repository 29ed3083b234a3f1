"""Store the load for the last hour and day in Redis, summed across all processes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import accumulate, pairwise
from typing import Any

from redis.asyncio import Redis

from agent_memory.foundation.core.metrics import REQUEST_BUCKETS
from agent_memory.foundation.storage.connection import Pipe, read, redis_errors
from agent_memory.foundation.storage.keyspace import Keys
from agent_memory_client.models import LoadHistory, LoadPeriod, LoadPoint

MINUTE, TEN_MINUTES = 60, 600
# The seconds per point, and the number of points.
_PERIODS: dict[LoadPeriod, tuple[int, int]] = {"hour": (MINUTE, 60), "day": (TEN_MINUTES, 144)}
_LIFETIMES = {MINUTE: 2 * 3600, TEN_MINUTES: 25 * 3600}
_OWNER = "owner"
_BOUNDS = (0.0, *REQUEST_BUCKETS)


class LoadStore:
    def __init__(self, client: Redis, keys: Keys) -> None:
        self._client = client
        self._keys = keys

    async def now(self) -> float:
        """Return the Redis time in seconds. All processes share this clock."""
        with redis_errors():
            seconds, micros = await self._client.time()
        return seconds + micros / 1e6

    async def own_minute(self, at: float, name: str) -> bool:
        """True if the process `name` was the first to claim this minute."""
        key = self._keys.load(MINUTE, begin_of(at, MINUTE))
        with redis_errors():
            async with self._client.pipeline() as pipe:
                pipe.hsetnx(key, _OWNER, name)
                pipe.expire(key, _LIFETIMES[MINUTE])
                pipe.hget(key, _OWNER)
                owner = (await pipe.execute())[-1]
        return owner == name.encode()

    async def add(self, at: float, counts: Mapping[str, int], totals: Mapping[int, Mapping[str, float]]) -> None:
        """Add counts to the periods that contain `at`, and set totals by period length (s)."""
        with redis_errors():
            async with self._client.pipeline() as pipe:
                for step, lifetime in _LIFETIMES.items():
                    key = self._keys.load(step, begin_of(at, step))
                    for name, count in counts.items():
                        pipe.hincrby(key, name, count)
                    if values := totals.get(step):
                        pipe.hset(key, mapping={name: str(value) for name, value in values.items()})
                    pipe.expire(key, lifetime)
                await pipe.execute()

    async def read_history(self, period: LoadPeriod) -> LoadHistory:
        step, number = _PERIODS[period]
        last = begin_of(await self.now(), step)
        begins = range(last - (number - 1) * step, last + 1, step)

        def build(pipe: Pipe) -> None:
            for begin in begins:
                pipe.hgetall(self._keys.load(step, begin))

        points = [_point(begin, row) for begin, row in zip(begins, await read(self._client, build), strict=True)]
        # Processes write a minute's counts only after the minute ends.
        return LoadHistory(step_seconds=step, points=points if points[-1].requests is not None else points[:-1])


def begin_of(at: float, step: int) -> int:
    return int(at) // step * step


def bucket_name(number: int) -> str:
    """Return the field for a bucket in `REQUEST_BUCKETS`. The last field is for slower requests."""
    return f"bucket{number}"


def _point(begin: int, row: Mapping[bytes, bytes]) -> LoadPoint:
    values: dict[str, Any] = {name.decode(): float(value) for name, value in row.items() if name != _OWNER.encode()}
    at = datetime.fromtimestamp(begin, UTC)
    if not values:
        return LoadPoint(at=at)
    buckets = [values.pop(bucket_name(number), 0) for number in range(len(REQUEST_BUCKETS) + 1)]
    looks, well = values.pop("looks", 0), values.pop("well", 0)
    times = {"median_ms": _quantile(0.5, buckets), "p95_ms": _quantile(0.95, buckets)}
    return LoadPoint.model_validate({"at": at, "healthy": well / looks if looks else None, **times, **values})


def _quantile(share: float, buckets: Sequence[float]) -> float | None:
    """Return the response time (ms) at this quantile, or None if there are no requests."""
    sums = [0.0, *accumulate(buckets)]
    target_count = share * sums[-1]
    for (below, above), (lower, upper) in zip(pairwise(sums), pairwise((*_BOUNDS, _BOUNDS[-1])), strict=True):
        if above >= target_count and above > below:
            return round(1000 * (lower + (upper - lower) * (target_count - below) / (above - below)), 2)
    return None
