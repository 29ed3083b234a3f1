"""Track the progress and starts of periodic jobs."""

from __future__ import annotations

from redis.asyncio import Redis

from agent_memory.foundation.storage.connection import read, write
from agent_memory.foundation.storage.keyspace import Keys


class JobTimes:
    def __init__(self, client: Redis, keys: Keys) -> None:
        self._client = client
        self._job_times = keys.job_times

    async def count_begin(self, name: str) -> int:
        """Record that a job has started. Return the number of starts since it last finished."""
        return (await write(self._client, lambda pipe: pipe.hincrby(self._job_times, f"begun:{name}", 1)))[0]

    async def forget_begins(self, name: str) -> None:
        """Reset the number of starts. Call this when a job ends, even if it fails."""
        await write(self._client, lambda pipe: pipe.hdel(self._job_times, f"begun:{name}"))

    async def looked_until(self, name: str) -> int:
        """Return the time up to which a job has processed changes (µs since 1970).

        Returns 0 before the first run.
        """
        return int((await read(self._client, lambda pipe: pipe.hget(self._job_times, name)))[0] or 0)

    async def note_looked(self, name: str, until: int) -> None:
        await write(self._client, lambda pipe: pipe.hset(self._job_times, name, str(until)))
