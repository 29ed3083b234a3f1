"""Timelines as a former version stored them: they do not say of which periods their events are, nor whose they are."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping

from redis.asyncio import Redis

from agent_memory.storage.connection import redis_errors
from agent_memory.storage.keyspace import Keys
from agent_memory.timeline.follower import TimelineFollower
from agent_memory.timeline.keys import TimelineKeys

_BATCH = 500
_LOOKED = "timelines"


class FormerTimelines:
    """Brings them into the present shape: each memory of theirs is followed once more."""

    def __init__(self, client: Redis, keys: Keys, follower: TimelineFollower) -> None:
        self._client = client
        self._keys = keys
        self._timeline_keys = TimelineKeys(keys.root)
        self._follower = follower

    async def follow_until_clean(self) -> int:
        """Follows what there is, unless a former look at the whole store found nothing; returns how many memories were followed.

        What a worker that dies leaves undone, the next look finds.
        """
        with redis_errors():
            if await self._client.hexists(self._keys.config, _LOOKED):
                return 0
        followed = 0
        async for mids in self._former_memories():
            await self._follower.follow_memories(mids)
            followed += len(mids)
        if not followed:
            with redis_errors():
                await self._client.hset(self._keys.config, _LOOKED, "1")
        return followed

    async def _former_memories(self) -> AsyncIterator[list[str]]:
        """The memories (their names in keys) whose events stand in no period; a scan in batches."""
        prefix = self._timeline_keys.timeline("")
        with redis_errors():
            async for key in self._client.scan_iter(match=prefix + "*", count=_BATCH):
                # Behind a second colon stand the sets of a timeline.
                if b":" in key[len(prefix) :]:
                    continue
                async for mids in self._former_of(key):
                    yield mids

    async def _former_of(self, key: bytes) -> AsyncIterator[list[str]]:
        batch: dict[bytes, bytes] = {}
        async for name, heads in self._client.hscan_iter(key, match="m*", count=_BATCH):
            batch[name] = heads
            if len(batch) >= _BATCH:
                yield _former(batch)
                batch = {}
        if mids := _former(batch):
            yield mids


def _former(rows: Mapping[bytes, bytes]) -> list[str]:
    return [name[1:].decode() for name, heads in rows.items() if any("h" not in head for head in json.loads(heads))]
