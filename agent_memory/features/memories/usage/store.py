"""Count reads in a separate hash, so that Redis does not reindex the memories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from redis.asyncio import Redis

from agent_memory.foundation.storage.connection import Pipe, read, write
from agent_memory.foundation.storage.keyspace import Keys
from agent_memory.foundation.storage.scripts import Script
from agent_memory_client.models import MemoryRecord

SAME_READING_SECONDS = 900
_BATCH = 200
_SCAN_STEPS = 20
_SCAN_STEP = 1000


def queue_usage(pipe: Pipe, keys: Keys, mids: Sequence[str]) -> None:
    """Queue a command that reads usage. `with_usage` parses each value of the reply."""
    pipe.execute_command("HMGET", keys.usage, *mids)


def with_usage(record: MemoryRecord, raw: bytes | None) -> MemoryRecord:
    """Update a record's access count and last access if the values in `raw` are higher."""
    if raw is not None:
        count, at = raw.split()
        read_at = datetime.fromtimestamp(int(at) / 1000, UTC)
        record.access_count = max(record.access_count, int(count))
        record.last_accessed = max(record.last_accessed, read_at)
    return record


class UsageStore:
    def __init__(self, client: Redis, keys: Keys) -> None:
        self._client = client
        self._keys = keys
        self._note = Script(client, "memories/usage_note")
        self._fold = Script(client, "memories/usage_fold")
        self._cursor = 0

    async def count_readings(self, reading_counts: Mapping[str, int]) -> int:
        """Count memories as read, each at most once every 15 minutes. Return the number counted.

        `reading_counts` maps mids to access counts.
        """
        if not reading_counts:
            return 0
        counted = await self._note(
            usage=self._keys.usage,
            unfolded=self._keys.usage_unfolded,
            memories=map(self._keys.memory, reading_counts),
            same_reading_ms=SAME_READING_SECONDS * 1000,
            readings=[part for item in reading_counts.items() for part in item],
        )
        return int(counted)

    async def fold_usage(self) -> int:
        """Copy last-read times to the index, and return the number of memories updated.

        Deletes usage data for deleted memories.
        """
        written = 0
        while True:
            members = (await read(self._client, lambda pipe: pipe.srandmember(self._keys.usage_unfolded, _BATCH)))[0]
            if not members:
                break
            mids = sorted(mid.decode() for mid in members)
            usage, unfolded = self._keys.usage, self._keys.usage_unfolded
            written += int(await self._fold(usage=usage, unfolded=unfolded, root=self._keys.root, mids=mids))
        await self._delete_stale_usage()
        return written

    async def _delete_stale_usage(self) -> None:
        """Delete usage data for missing memories in the next part of the usage hash."""
        for _ in range(_SCAN_STEPS):
            cursor = self._cursor
            self._cursor, usage = (await read(self._client, lambda pipe, c=cursor: pipe.hscan(self._keys.usage, c, count=_SCAN_STEP)))[0]
            mids = [mid.decode() for mid in usage]
            exists_flags = await read(self._client, lambda pipe, m=mids: [pipe.exists(self._keys.memory(mid)) for mid in m]) if mids else []
            deleted_mids = [mid for mid, exists in zip(mids, exists_flags, strict=True) if not exists]
            if deleted_mids:
                await write(self._client, lambda pipe, m=deleted_mids: pipe.hdel(self._keys.usage, *m))
            if self._cursor == 0:
                return
