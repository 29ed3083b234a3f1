"""Redis storage of answers under an Idempotency-Key."""

from __future__ import annotations

import json
from dataclasses import dataclass

from redis.asyncio import Redis
from ulid import ULID

from agent_memory.foundation.core.scope import Scope
from agent_memory.foundation.storage.connection import redis_errors
from agent_memory.foundation.storage.keyspace import Keys
from agent_memory.foundation.storage.scripts import Script

KEPT_SECONDS = 24 * 3600


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """An answer: HTTP status, body, and headers as "name: value" lines."""

    status: int
    body: bytes
    headers: bytes


@dataclass(frozen=True, slots=True)
class ClaimedKey:
    """A key that this request claimed. Ids that the request makes follow from `seed`; `holder` owns the lease."""

    seed: str
    holder: str


@dataclass(frozen=True, slots=True)
class HeldKey:
    """A key whose first request is running. Its lease ends in `lease_ms` unless renewed."""

    lease_ms: int


class IdempotencyStore:
    def __init__(self, client: Redis, keys: Keys) -> None:
        self._client = client
        self._keys = keys
        self._claim = Script(client, "api/idempotency_claim")
        self._renew = Script(client, "api/idempotency_renew")
        self._keep = Script(client, "api/idempotency_keep")
        self._free = Script(client, "api/idempotency_free")

    def _name(self, scope: Scope, key: str) -> str:
        """Callers of different reach never share an answer: the same request can mean something else to them."""
        limits = [None if limit is None else json.dumps(sorted(limit)) for limit in (scope.namespaces, scope.users, scope.agents)]
        return self._keys.idempotency(scope.tenant, key, *(limits if scope.limited else ()))

    async def claim_or_read(self, scope: Scope, key: str, request: str, lease_ms: int) -> StoredAnswer | ClaimedKey | HeldKey | None:
        """Claim a key for a request's digest, or return its state. None: the key belongs to another request."""
        holder = str(ULID())
        name = self._name(scope, key)
        reply = await self._claim(
            answer=name, request=request, lease_ms=lease_ms, ttl_seconds=KEPT_SECONDS, seed=str(ULID()), holder=holder
        )
        match reply[0]:
            case b"done":
                return StoredAnswer(int(reply[1]), reply[2], reply[3])
            case b"new":
                return ClaimedKey(reply[1].decode(), holder)
            case b"underway":
                return HeldKey(int(reply[1]))
            case _:
                return None

    async def renew_lease(self, scope: Scope, key: str, claimed: ClaimedKey, lease_ms: int) -> None:
        await self._renew(answer=self._name(scope, key), holder=claimed.holder, lease_ms=lease_ms)

    async def store_answer(self, scope: Scope, key: str, request: str, answer: StoredAnswer) -> None:
        await self._keep(
            answer=self._name(scope, key),
            request=request,
            status=answer.status,
            body=answer.body,
            headers=answer.headers,
            ttl_seconds=KEPT_SECONDS,
        )

    async def release_key(self, scope: Scope, key: str, claimed: ClaimedKey) -> None:
        """Release a key whose request changed nothing; ignore a key that another request holds by now."""
        with redis_errors():
            await self._free(answer=self._name(scope, key), holder=claimed.holder)
