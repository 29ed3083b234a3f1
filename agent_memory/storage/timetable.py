"""The timetable of periodic jobs: one mark per job in the outbox, due at its next time. No process is the leader."""

from __future__ import annotations

from collections.abc import Mapping

from redis.asyncio import Redis

from agent_memory.storage.connection import read, redis_errors
from agent_memory.storage.keys import Keys
from agent_memory.tasks import DueKind


class Timetable:
    """When each job is due next, and how far it has looked."""

    def __init__(self, client: Redis, keys: Keys) -> None:
        self._client = client
        self._keys = keys

    async def ensure(self, jobs: Mapping[str, float]) -> None:
        """Sees to it that each job is due within its period (seconds) from now; one that is due earlier, or runs, stays as it is."""
        if not jobs:
            return
        now = await self._now()
        with redis_errors():
            async with self._client.pipeline(transaction=True) as pipe:
                # A job that killed its workers was given up; a new start is a new try.
                pipe.zrem(self._keys.dead(DueKind.PERIODIC), *jobs)
                pipe.zadd(self._keys.due(DueKind.PERIODIC), {name: now + seconds * 1000 for name, seconds in jobs.items()}, lt=True)
                await pipe.execute()

    async def again(self, name: str, seconds: float) -> None:
        """Marks a job that was just done for its next time; its claim then ends without removing the mark."""
        now = await self._now()
        with redis_errors():
            await self._client.zadd(self._keys.due(DueKind.PERIODIC), {name: now + seconds * 1000})

    async def seen(self, name: str) -> int:
        """How far a job has looked (µs since 1970); 0 at first."""
        key = self._keys.seen
        return int((await read(self._client, lambda pipe: pipe.hget(key, name)))[0] or 0)

    async def looked(self, name: str, until: int) -> None:
        """Remembers how far a job has looked."""
        with redis_errors():
            await self._client.hset(self._keys.seen, name, str(until))

    async def _now(self) -> int:
        seconds, micros = (await read(self._client, lambda pipe: pipe.time()))[0]
        return seconds * 1000 + micros // 1000
