"""Answers that were given under an Idempotency-Key, so that the same request again gets the same answer and changes nothing."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass

from redis.asyncio import Redis
from ulid import ULID

from agent_memory.scope import Scope
from agent_memory.storage.connection import redis_errors
from agent_memory.storage.keys import Keys
from agent_memory.storage.lua import Script
from agent_memory.storage.outbox_scripts import PRELUDE

# How long an answer is kept.
KEPT_SECONDS = 24 * 3600
# A request that is under way for this much longer than its deadline died with its process.
_MARGIN_SECONDS = 5

# KEYS answer; ARGV request digest, seconds it may be under way, seconds it is kept, a seed
# -> {"new", the key's seed} | {"other"} | {"underway"} | {"done", status, body, headers}
# The seed is that of the first request under the key, also when that one died or lost its answer on the way: what it made, its
# repetition makes again.
_CLAIM = (
    PRELUDE
    + """
local old = redis.call('HMGET', KEYS[1], 'q', 's', 'b', 'h', 'u', 'n')
if old[1] and old[1] ~= ARGV[1] then return {'other'} end
if old[2] then return {'done', old[2], old[3], old[4]} end
if old[1] and tonumber(old[5]) > MS then return {'underway'} end
local seed = old[6] or ARGV[4]
redis.call('HSET', KEYS[1], 'q', ARGV[1], 'n', seed, 'u', string.format('%.0f', MS + ARGV[2] * 1000))
redis.call('EXPIRE', KEYS[1], ARGV[3])
return {'new', seed}
"""
)

# KEYS answer; ARGV request digest, status, body, headers, seconds
_KEEP = """
if redis.call('HGET', KEYS[1], 'q') == ARGV[1] then
  redis.call('HSET', KEYS[1], 's', ARGV[2], 'b', ARGV[3], 'h', ARGV[4])
  redis.call('EXPIRE', KEYS[1], ARGV[5])
end
"""

# KEYS answer; ARGV request digest
_FREE = """
local old = redis.call('HMGET', KEYS[1], 'q', 's')
if old[1] == ARGV[1] and not old[2] then redis.call('HDEL', KEYS[1], 'q', 'u') end
"""


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """An answer as it was given: HTTP status, body, and headers as "name: value" lines."""

    status: int
    body: bytes
    headers: bytes


@dataclass(frozen=True, slots=True)
class Claimed:
    """A key that is this request's; the ids that it makes follow from the seed."""

    seed: str


class IdempotencyStore:
    """Answers by key, within a tenant."""

    def __init__(self, client: Redis, keys: Keys, *, deadline: float) -> None:
        """`deadline` is that of a request, in seconds: the key of one that died with its process is free again soon after it."""
        self._client = client
        self._under_way = math.ceil(deadline) + _MARGIN_SECONDS
        self._keys = keys
        self._claim = Script(client, _CLAIM)
        self._keep = Script(client, _KEEP)
        self._free = Script(client, _FREE)

    def _name(self, scope: Scope, key: str) -> str:
        """Callers who reach different things never share an answer: the same request may mean something else to them."""
        limits = [None if limit is None else json.dumps(sorted(limit)) for limit in (scope.namespaces, scope.users, scope.agents)]
        return self._keys.idempotency(scope.tenant, key, *(limits if scope.limited else ()))

    async def claim(self, scope: Scope, key: str, request: str) -> KeptAnswer | Claimed | str:
        """Takes a key for a request (its digest): then its seed, or the kept answer, "other" (it stood for another) or "underway"."""
        name = self._name(scope, key)
        reply = await self._claim([name], [request, self._under_way, KEPT_SECONDS, str(ULID())])
        if reply[0] == b"done":
            return KeptAnswer(int(reply[1]), reply[2], reply[3])
        return Claimed(reply[1].decode()) if reply[0] == b"new" else reply[0].decode()

    async def keep(self, scope: Scope, key: str, request: str, answer: KeptAnswer) -> None:
        """Keeps the answer for a day."""
        name = self._name(scope, key)
        await self._keep([name], [request, answer.status, answer.body, answer.headers, KEPT_SECONDS])

    async def free(self, scope: Scope, key: str, request: str) -> None:
        """Gives a key back whose request changed nothing."""
        with redis_errors():
            await self._free([self._name(scope, key)], [request])
