"""Answers that were given under an Idempotency-Key, so that the same request again gets the same answer and changes nothing."""

from __future__ import annotations

import json
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

# KEYS answer; ARGV request digest, ms until its lease ends, seconds it is kept, a seed, who asks
# -> {"new", the key's seed} | {"other"} | {"underway", ms until its lease ends} | {"done", status, body, headers}
# The seed is that of the first request under the key, also when that one died or lost its answer on the way: what it made, its
# repetition makes again.
_CLAIM = (
    PRELUDE
    + """
local old = redis.call('HMGET', KEYS[1], 'q', 's', 'b', 'h', 'u', 'n')
if old[1] and old[1] ~= ARGV[1] then return {'other'} end
if old[2] then return {'done', old[2], old[3], old[4]} end
if old[1] and tonumber(old[5]) > MS then return {'underway', tonumber(old[5]) - MS} end
local seed = old[6] or ARGV[4]
redis.call('HSET', KEYS[1], 'q', ARGV[1], 'n', seed, 'u', string.format('%.0f', MS + ARGV[2]), 'o', ARGV[5])
redis.call('EXPIRE', KEYS[1], ARGV[3])
return {'new', seed}
"""
)

# KEYS answer; ARGV who holds it, ms until its lease ends
_RENEW = (
    PRELUDE
    + """
if redis.call('HGET', KEYS[1], 'o') == ARGV[1] then redis.call('HSET', KEYS[1], 'u', string.format('%.0f', MS + ARGV[2])) end
"""
)

# KEYS answer; ARGV request digest, status, body, headers, seconds
_KEEP = """
if redis.call('HGET', KEYS[1], 'q') == ARGV[1] then
  redis.call('HSET', KEYS[1], 's', ARGV[2], 'b', ARGV[3], 'h', ARGV[4])
  redis.call('HDEL', KEYS[1], 'o')
  redis.call('EXPIRE', KEYS[1], ARGV[5])
end
"""

# KEYS answer; ARGV who holds it
_FREE = """
if redis.call('HGET', KEYS[1], 'o') == ARGV[1] then redis.call('HDEL', KEYS[1], 'q', 'u', 'o') end
"""


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """An answer as it was given: HTTP status, body, and headers as "name: value" lines."""

    status: int
    body: bytes
    headers: bytes


@dataclass(frozen=True, slots=True)
class Claimed:
    """A key that is this request's; the ids that it makes follow from the seed. `holder` is what it holds its lease by."""

    seed: str
    holder: str


@dataclass(frozen=True, slots=True)
class Held:
    """A key whose first request is under way: its lease ends in `lease_ms`, unless it is renewed."""

    lease_ms: int


class IdempotencyStore:
    """Answers by key, within a tenant."""

    def __init__(self, client: Redis, keys: Keys) -> None:
        self._client = client
        self._keys = keys
        self._claim = Script(client, _CLAIM)
        self._renew = Script(client, _RENEW)
        self._keep = Script(client, _KEEP)
        self._free = Script(client, _FREE)

    def _name(self, scope: Scope, key: str) -> str:
        """Callers who reach different things never share an answer: the same request may mean something else to them."""
        limits = [None if limit is None else json.dumps(sorted(limit)) for limit in (scope.namespaces, scope.users, scope.agents)]
        return self._keys.idempotency(scope.tenant, key, *(limits if scope.limited else ()))

    async def claim(self, scope: Scope, key: str, request: str, lease_ms: int) -> KeptAnswer | Claimed | Held | None:
        """Takes a key for a request (its digest), or says what it stands for: the kept answer, a request that is under way, or
        None when it stands for another request."""
        holder = str(ULID())
        reply = await self._claim([self._name(scope, key)], [request, lease_ms, KEPT_SECONDS, str(ULID()), holder])
        match reply[0]:
            case b"done":
                return KeptAnswer(int(reply[1]), reply[2], reply[3])
            case b"new":
                return Claimed(reply[1].decode(), holder)
            case b"underway":
                return Held(int(reply[1]))
            case _:
                return None

    async def renew(self, scope: Scope, key: str, claimed: Claimed, lease_ms: int) -> None:
        """Lets the lease of a key run from now."""
        await self._renew([self._name(scope, key)], [claimed.holder, lease_ms])

    async def keep(self, scope: Scope, key: str, request: str, answer: KeptAnswer) -> None:
        """Keeps the answer for a day."""
        name = self._name(scope, key)
        await self._keep([name], [request, answer.status, answer.body, answer.headers, KEPT_SECONDS])

    async def free(self, scope: Scope, key: str, claimed: Claimed) -> None:
        """Gives a key back whose request changed nothing; it does nothing where another request holds it by now."""
        with redis_errors():
            await self._free([self._name(scope, key)], [claimed.holder])
