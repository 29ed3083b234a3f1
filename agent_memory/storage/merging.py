"""Merging: one memory takes over what its repeats know, and these go, in one step and only while none of them has changed."""

from __future__ import annotations

from collections.abc import Sequence

from redis.asyncio import Redis

from agent_memory.scope import Scope
from agent_memory.storage.codec import memory_fields
from agent_memory.storage.connection import read, redis_errors
from agent_memory.storage.keys import Keys, digest
from agent_memory.storage.lua import Arg, Script
from agent_memory.storage.outbox_scripts import PRELUDE
from agent_memory.storage.survey import Found
from agent_memory.tasks import DueKind
from agent_memory.units import unit_terms
from agent_memory_client.models import MemoryRecord

_TOMBSTONE_SECONDS = 30 * 24 * 3600
_REMEMBERED_SECONDS = 30 * 24 * 3600
# What a merge can change of a memory's index fields; its text, scope and type stay, and with them its vector.
_CHANGED = ("j", "la", "k", "tp", "en")

# KEYS due:memory, try:memory, why:memory, dead:memory, the memory that stays, its vector, then per repeat: key, tombstone, vector
# ARGV tombstone seconds, version of the memory that stays, n, field, value … (n of both), then per repeat: mid, version
# -> 1 merged, 0 one of them changed or is gone, and nothing was done. The digest of what the writer gave ("h") stays: the same PUT again
# is still the same.
_MERGE = (
    PRELUDE
    + """
local n = tonumber(ARGV[3])
local first = 4 + 2 * n
if redis.call('HGET', KEYS[5], 'n') ~= ARGV[2] then return 0 end
local a = first
for k = 7, #KEYS, 3 do
  if redis.call('HGET', KEYS[k], 'n') ~= ARGV[a + 1] then return 0 end
  a = a + 2
end
redis.call('HSET', KEYS[5], 'n', string.format('%.0f', US), unpack(ARGV, 4, first - 1))
if redis.call('EXISTS', KEYS[6]) == 1 then
  for i = 4, first - 1, 2 do
    if ARGV[i] ~= 'j' and ARGV[i] ~= 'k' then redis.call('HSET', KEYS[6], ARGV[i], ARGV[i + 1]) end
  end
end
a = first
for k = 7, #KEYS, 3 do
  redis.call('DEL', KEYS[k], KEYS[k + 2])
  redis.call('SET', KEYS[k + 1], '1', 'EX', ARGV[1])
  redis.call('ZREM', KEYS[1], ARGV[a])
  redis.call('HDEL', KEYS[2], ARGV[a])
  redis.call('HDEL', KEYS[3], ARGV[a])
  redis.call('ZREM', KEYS[4], ARGV[a])
  a = a + 2
end
return 1
"""
)


class MergeStore:
    """Merges memories, and remembers which pairs were found to be different."""

    def __init__(self, client: Redis, keys: Keys) -> None:
        self._client = client
        self._keys = keys
        self._merge = Script(client, _MERGE)

    async def merge(self, scope: Scope, stays: Found, merged: MemoryRecord, repeats: Sequence[Found]) -> bool:
        """Writes `merged` in the place of `stays` and deletes the repeats for good; False when any of them changed meanwhile.

        `merged` differs from what stays in its evidence, tags, metadata, counts and times of reading only. Never for messages, whose
        place among their neighbours this does not know.
        """
        keys = [get(DueKind.MEMORY) for get in (self._keys.due, self._keys.tries, self._keys.why, self._keys.dead)]
        keys += [self._keys.memory(stays.mid), self._keys.vector(stays.mid)]
        flat = memory_fields(scope.tenant, merged, unit_terms(merged))
        some: list[Arg] = []
        for name, value in zip(flat[::2], flat[1::2], strict=True):
            if name in _CHANGED:
                some += [name, value]
        args: list[Arg] = [_TOMBSTONE_SECONDS, stays.version, len(some) // 2, *some]
        for repeat in repeats:
            keys += [self._keys.memory(repeat.mid), self._keys.tombstone(repeat.mid), self._keys.vector(repeat.mid)]
            args += [repeat.mid, repeat.version]
        return bool(await self._merge(keys, args))

    async def told_apart(self, pairs: Sequence[tuple[Found, Found]]) -> list[bool]:
        """Which of the pairs were judged to be different, as they are now."""
        names = [_pair(*pair) for pair in pairs]
        found = await read(self._client, lambda pipe: [pipe.exists(self._keys.apart(name)) for name in names]) if pairs else []
        return [bool(one) for one in found]

    async def keep_apart(self, pairs: Sequence[tuple[Found, Found]]) -> None:
        """Remembers that these are different; a change of either is a new question."""
        if not pairs:
            return
        with redis_errors():
            async with self._client.pipeline(transaction=False) as pipe:
                for pair in pairs:
                    pipe.set(self._keys.apart(_pair(*pair)), "1", ex=_REMEMBERED_SECONDS)
                await pipe.execute()


def _pair(one: Found, other: Found) -> str:
    first, second = sorted((one, other), key=lambda found: found.mid)
    return digest("pair", first.mid, str(first.version), second.mid, str(second.version))
