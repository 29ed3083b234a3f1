"""Repair of memories whose record says another id than the one that their keys are made of, as a former version stored them.

MCP's `create_long_term_memories` without ids wrote one id into the records of many memories. Their keys are digests of the ids they were
meant to have, which nobody was told: each gets an id made of its key, and keys that belong to that id.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Sequence
from typing import Any

from pydantic_core import from_json, to_json
from redis.asyncio import Redis
from ulid import ULID

from agent_memory.storage.codec import decode_memory
from agent_memory.storage.connection import Pipe, read, redis_errors
from agent_memory.storage.keys import Keys, untag
from agent_memory.storage.lua import Arg, Script
from agent_memory.storage.memory_places import PLACES
from agent_memory.storage.outbox_scripts import PRELUDE
from agent_memory.storage.steps import order_of
from agent_memory.tasks import DueKind

log = logging.getLogger(__name__)

_BATCH = 500
_LOOKED = "identities"

# Gives a memory another name in keys, with all that is known of it. The old name stays another name of it.
# KEYS due:memory, try:memory, why:memory, dead:memory, wake
# ARGV root, old mid, new mid, order key or "", then per document of it: its name without the mid ("m:", "h:", "h:.<version>" as "m", "h",
# "<version>"), its record as it was read, its record with the new id -> 1 done, 0 it changed meanwhile
_RENAME = (
    PRELUDE
    + """
local R, DUE, TRIES, WHY, DEAD = ARGV[1], KEYS[1], KEYS[2], KEYS[3], KEYS[4]
"""
    + PLACES
    + """
local old, new, order = ARGV[2], ARGV[3], ARGV[4]
local function key(kind, mid)
  if kind == 'm' then return mk(mid) end
  return kind == 'h' and hk(mid) or hk(mid .. '.' .. kind)
end
if home(new) then return 0 end
for i = 5, #ARGV, 3 do
  if redis.call('HGET', key(ARGV[i], old), 'j') ~= ARGV[i + 1] then return 0 end
end
local from = home(old)
local current = from == mk(old)
local at = from and redis.call('HMGET', from, 'bk', 'h') or {}
if current then unlink(old, at[1]) end
for i = 5, #ARGV, 3 do
  redis.call('HSET', key(ARGV[i], old), 'j', ARGV[i + 2])
  redis.call('RENAME', key(ARGV[i], old), key(ARGV[i], new))
  if redis.call('SREM', R .. 'bare', old .. '.' .. ARGV[i]) == 1 then redis.call('SADD', R .. 'bare', new .. '.' .. ARGV[i]) end
end
for _, kind in ipairs({'v:', 'ev:', 'mh:'}) do
  if redis.call('EXISTS', R .. kind .. old) == 1 then redis.call('RENAME', R .. kind .. old, R .. kind .. new) end
end
for _, member in ipairs(redis.call('ZRANGE', R .. 'mh:' .. new, 0, -1)) do
  local kind, rest = string.sub(member, 1, 1), string.sub(member, 2)
  if kind == 'a' then
    local dig = string.match(redis.call('GET', R .. 'al:' .. rest) or '', ' (.*)$')
    redis.call('SET', R .. 'al:' .. rest, new .. ' ' .. (dig or ''))
  elseif kind == 'c' then
    for _, field in ipairs({'i', 'ms', 'p'}) do
      local said = redis.call('HGET', R .. 'ch:' .. rest, field)
      if said then redis.call('HSET', R .. 'ch:' .. rest, field, (string.gsub(said, old, new))) end
    end
  end
end
local merged = redis.call('GET', R .. 'al:' .. old)
if merged then
  redis.call('SET', R .. 'al:' .. new, merged)
  redis.call('ZADD', R .. 'mh:' .. string.match(merged, '^%S+'), US, 'a' .. new)
elseif from then
  redis.call('SET', R .. 'al:' .. old, new .. ' ' .. (at[2] or ''))
  redis.call('ZADD', R .. 'mh:' .. new, US, 'a' .. old)
end
local seconds = redis.call('TTL', R .. 'mt:' .. old)
if seconds > 0 and not from then redis.call('SET', R .. 'mt:' .. new, '1', 'EX', seconds) end
local used = redis.call('HGET', R .. 'use', old)
if used then
  redis.call('HSET', R .. 'use', new, used)
  redis.call('HDEL', R .. 'use', old)
end
if redis.call('SREM', R .. 'use:unfolded', old) == 1 then redis.call('SADD', R .. 'use:unfolded', new) end
local place = order ~= '' and redis.call('ZSCORE', order, old)
if place then
  redis.call('ZREM', order, old)
  redis.call('ZADD', order, place, new)
end
done(old)
if current then link(new, at[1]) end
if from then
  due(DUE, MS, new)
  wake(KEYS[5])
end
return 1
"""
)


class IdentityRepair:
    """Finds and repairs such memories."""

    def __init__(self, client: Redis, keys: Keys, *, fsync: bool = False) -> None:
        self._client = client
        self._keys = keys
        self._rename = Script(client, _RENAME, fsync=fsync)

    async def until_clean(self) -> int:
        """Repairs what there is, unless a former look at the whole store found nothing; returns how many memories were repaired."""
        with redis_errors():
            looked = await self._client.hexists(self._keys.config, _LOOKED)
        if looked:
            return 0
        repaired = await self.repair()
        if repaired:
            log.warning("%d memories had an id that was not theirs and got one of their own", repaired)
        else:
            with redis_errors():
                await self._client.hset(self._keys.config, _LOOKED, "1")
        return repaired

    async def repair(self) -> int:
        """Looks at every memory and version, a scan in batches; returns how many memories were repaired."""
        broken: dict[str, str] = {}
        for prefix in (self._keys.memory_prefix, self._keys.history_prefix):
            async for names in self._names(prefix):
                broken.update(await self._strangers(prefix, names))
        return sum([await self._repair(tenant, mid) for mid, tenant in broken.items()])

    async def _names(self, prefix: str) -> AsyncIterator[list[str]]:
        batch: list[str] = []
        with redis_errors():
            async for key in self._client.scan_iter(match=prefix + "*", count=_BATCH):
                batch.append(key.decode().removeprefix(prefix))
                if len(batch) >= _BATCH:
                    yield batch
                    batch = []
        yield batch

    async def _strangers(self, prefix: str, names: Sequence[str]) -> dict[str, str]:
        """The memories among these documents whose record has an id of other keys, each with its tenant."""
        if not names:
            return {}
        rows = await read(self._client, lambda pipe: [pipe.hmget(prefix + name, ["t", "j"]) for name in names])
        found: dict[str, str] = {}
        for name, (owner, raw) in zip(names, rows, strict=True):
            if owner is None or raw is None:
                continue
            mid, tenant = name.partition(".")[0], untag(owner.decode())
            try:
                memory_id = from_json(raw)["id"]
            except (ValueError, KeyError, TypeError):
                log.warning("the record of memory %s cannot be read: it is left as it is", mid)
                continue
            if self._keys.mid(tenant, memory_id) != mid:
                found[mid] = tenant
        return found

    async def _repair(self, tenant: str, mid: str) -> bool:
        documents = await self._documents(mid)
        if not documents:
            return False
        name = bytearray.fromhex(mid)
        name[0] &= 127  # the times of ULIDs end before their first bit
        new = str(ULID(bytes(name)))
        order = order_of(self._keys, tenant, decode_memory(documents[0][1])) or ""
        args: list[Arg] = [self._keys.root, mid, self._keys.mid(tenant, new), order]
        for kind, raw in documents:
            body: dict[str, Any] = from_json(raw)
            args += [kind, raw, to_json({**body, "id": new})]
        keys = [get(DueKind.MEMORY) for get in (self._keys.due, self._keys.tries, self._keys.why, self._keys.dead)]
        return bool(await self._rename([*keys, self._keys.wake], args))

    async def _documents(self, mid: str) -> list[tuple[str, bytes]]:
        """The records of a memory, its current one first, as `_RENAME` names them."""
        k = self._keys

        def build(pipe: Pipe) -> None:
            pipe.zrange(k.ledger(mid), 0, -1)
            pipe.hget(k.memory(mid), "j")
            pipe.hget(k.history(mid), "j")

        ledger, current, over = await read(self._client, build)
        found = [(kind, raw) for kind, raw in (("m", current), ("h", over)) if raw is not None]
        versions = [member.decode() for member in ledger if member.isdigit()]
        if versions:
            rows = await read(self._client, lambda pipe: [pipe.hget(k.history(f"{mid}.{version}"), "j") for version in versions])
            found += [(version, raw) for version, raw in zip(versions, rows, strict=True) if raw is not None]
        return found
