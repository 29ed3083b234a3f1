"""Answers that were given under an Idempotency-Key, so that the same request again gets the same answer and changes nothing."""

from __future__ import annotations

from dataclasses import dataclass

from redis.asyncio import Redis

from agent_memory.scope import Scope
from agent_memory.storage.connection import redis_errors
from agent_memory.storage.keys import Keys
from agent_memory.storage.lua import Script

# How long an answer is kept, and how long a request may be under way before its key is free again (it died with its process).
KEPT_SECONDS = 24 * 3600
UNDERWAY_SECONDS = 60

# KEYS answer; ARGV request digest, seconds -> {"new"} | {"other"} | {"underway"} | {"done", status, body, headers}
_CLAIM = """
local old = redis.call('HMGET', KEYS[1], 'q', 's', 'b', 'h')
if not old[1] then
  redis.call('HSET', KEYS[1], 'q', ARGV[1])
  redis.call('EXPIRE', KEYS[1], ARGV[2])
  return {'new'}
end
if old[1] ~= ARGV[1] then return {'other'} end
if not old[2] then return {'underway'} end
return {'done', old[2], old[3], old[4]}
"""

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
if old[1] == ARGV[1] and not old[2] then redis.call('DEL', KEYS[1]) end
"""


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """An answer as it was given: HTTP status, body, and headers as "name: value" lines."""

    status: int
    body: bytes
    headers: bytes


class IdempotencyStore:
    """Answers by key, within a tenant."""

    def __init__(self, client: Redis, keys: Keys) -> None:
        self._client = client
        self._keys = keys
        self._claim = Script(client, _CLAIM)
        self._keep = Script(client, _KEEP)
        self._free = Script(client, _FREE)

    async def claim(self, scope: Scope, key: str, request: str) -> KeptAnswer | str:
        """Takes a key for a request (its digest): "new", or "other" (the key stood for another request), "underway", or the kept answer."""
        reply = await self._claim([self._keys.idempotency(scope.tenant, key)], [request, UNDERWAY_SECONDS])
        if reply[0] == b"done":
            return KeptAnswer(int(reply[1]), reply[2], reply[3])
        return reply[0].decode()

    async def keep(self, scope: Scope, key: str, request: str, answer: KeptAnswer) -> None:
        """Keeps the answer for a day."""
        name = self._keys.idempotency(scope.tenant, key)
        await self._keep([name], [request, answer.status, answer.body, answer.headers, KEPT_SECONDS])

    async def free(self, scope: Scope, key: str, request: str) -> None:
        """Gives a key back whose request changed nothing."""
        with redis_errors():
            await self._free([self._keys.idempotency(scope.tenant, key)], [request])
