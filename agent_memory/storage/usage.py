"""How often memories were read, and when last. Kept beside them: a write to a memory's own hash would index all of its words again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from redis.asyncio import Redis

from agent_memory.storage.codec import set_fields
from agent_memory.storage.connection import Pipe, read, redis_errors
from agent_memory.storage.keys import Keys
from agent_memory.storage.lua import Arg, Script
from agent_memory.storage.outbox_scripts import PRELUDE
from agent_memory_client.models import MemoryRecord

# Reading a memory again within this time counts as the same reading.
SAME_READING_SECONDS = 900
_BATCH = 200
_SCAN_STEPS = 20
_SCAN_STEP = 1000

# KEYS usage, usage not yet in the index, then the memories; ARGV ms that count as one reading, then per memory: mid, count as it was seen
# -> how many were counted. What was deleted meanwhile is not.
_NOTE = (
    PRELUDE
    + """
local counted = 0
for i = 1, #KEYS - 2 do
  local mid, seen = ARGV[2 * i], tonumber(ARGV[2 * i + 1])
  local count, at = string.match(redis.call('HGET', KEYS[1], mid) or '', '^(%d+) (%d+)$')
  if (not at or MS - tonumber(at) >= tonumber(ARGV[1])) and redis.call('EXISTS', KEYS[i + 2]) == 1 then
    redis.call('HSET', KEYS[1], mid, string.format('%.0f %.0f', math.max(tonumber(count or '0'), seen) + 1, MS))
    redis.call('SADD', KEYS[2], mid)
    counted = counted + 1
  end
end
return counted
"""
)

# KEYS usage, usage not yet in the index, then per memory: its key, its vector's key; ARGV mids -> how many index entries were written
_FOLD = """
local written = 0
for i = 1, #ARGV do
  local memory, vector = KEYS[2 * i + 1], KEYS[2 * i + 2]
  local at = string.match(redis.call('HGET', KEYS[1], ARGV[i]) or '', ' (%d+)$')
  if redis.call('EXISTS', memory) == 0 then
    redis.call('HDEL', KEYS[1], ARGV[i])
  elseif at then
    local la = string.format('%.3f', tonumber(at) / 1000)
    redis.call('HSET', memory, 'la', la)
    if redis.call('EXISTS', vector) == 1 then redis.call('HSET', vector, 'la', la) end
    written = written + 1
  end
  redis.call('SREM', KEYS[2], ARGV[i])
end
return written
"""


def queue_usage(pipe: Pipe, keys: Keys, mids: Sequence[str]) -> None:
    """Asks for the usage of some memories (at least one), in one command; `with_usage` reads each value of the reply."""
    pipe.execute_command("HMGET", keys.usage, *mids)


def with_usage(record: MemoryRecord, raw: bytes | None) -> MemoryRecord:
    """The record, changed to say how often and when it was last read, as far as its own figures are not larger."""
    if raw is not None:
        count, at = raw.split()
        read_at = datetime.fromtimestamp(int(at) / 1000, UTC)
        set_fields(record, access_count=max(record.access_count, int(count)), last_accessed=max(record.last_accessed, read_at))
    return record


class UsageStore:
    """Writes usage, and lets the index know of it."""

    def __init__(self, client: Redis, keys: Keys) -> None:
        self._client = client
        self._keys = keys
        self._note = Script(client, _NOTE)
        self._fold = Script(client, _FOLD)
        self._cursor = 0

    async def note(self, seen: Mapping[str, int]) -> int:
        """Counts a reading of each of these memories (name in keys -> the count that was shown); returns how many were counted.

        A memory's readings within 15 minutes count as one, in all processes together.
        """
        args: list[Arg] = [SAME_READING_SECONDS * 1000]
        for mid, count in seen.items():
            args += [mid, count]
        keys = [self._keys.usage, self._keys.usage_unfolded, *map(self._keys.memory, seen)]
        return int(await self._note(keys, args)) if seen else 0

    async def fold(self) -> int:
        """Brings the index's times of reading up to date, which filters look at, and forgets the usage of what is gone.

        In small steps, since each rewrites index entries; returns how many.
        """
        written = 0
        while True:
            some = (await read(self._client, lambda pipe: pipe.srandmember(self._keys.usage_unfolded, _BATCH)))[0]
            if not some:
                break
            mids = sorted(mid.decode() for mid in some)
            keys = [self._keys.usage, self._keys.usage_unfolded]
            for mid in mids:
                keys += [self._keys.memory(mid), self._keys.vector(mid)]
            written += int(await self._fold(keys, mids))
        await self._forget_gone()
        return written

    async def _forget_gone(self) -> None:
        """Looks at a part of all usage in each call, the next part in the next."""
        for _ in range(_SCAN_STEPS):
            cursor = self._cursor
            self._cursor, found = (await read(self._client, lambda pipe, c=cursor: pipe.hscan(self._keys.usage, c, count=_SCAN_STEP)))[0]
            mids = [mid.decode() for mid in found]
            there = await read(self._client, lambda pipe, m=mids: [pipe.exists(self._keys.memory(mid)) for mid in m]) if mids else []
            gone = [mid for mid, exists in zip(mids, there, strict=True) if not exists]
            if gone:
                with redis_errors():
                    await self._client.hdel(self._keys.usage, *gone)
            if self._cursor == 0:
                return
