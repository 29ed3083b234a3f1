"""What is known of the periodic jobs beside docket's own schedule: how far each has looked, and how often it began and did not end."""

from __future__ import annotations

from redis.asyncio import Redis

from agent_memory.foundation.storage.connection import read, redis_errors
from agent_memory.foundation.storage.keyspace import Keys


class JobTimes:
    """The periodic jobs' own records."""

    def __init__(self, client: Redis, keys: Keys) -> None:
        self._client = client
        self._seen = keys.seen

    async def count_begin(self, name: str) -> int:
        """Counts a beginning; returns how many there were since the job last ended."""
        with redis_errors():
            return int(await self._client.hincrby(self._seen, f"begun:{name}", 1))

    async def forget_begins(self, name: str) -> None:
        """Forgets the beginnings of a job that has come to an end, be it a bad one."""
        with redis_errors():
            await self._client.hdel(self._seen, f"begun:{name}")

    async def looked_until(self, name: str) -> int:
        """How far a job has looked (µs since 1970); 0 at first."""
        return int((await read(self._client, lambda pipe: pipe.hget(self._seen, name)))[0] or 0)

    async def note_looked(self, name: str, until: int) -> None:
        """Remembers how far a job has looked."""
        with redis_errors():
            await self._client.hset(self._seen, name, str(until))
