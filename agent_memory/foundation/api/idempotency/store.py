"""Answers that were given under an Idempotency-Key, so that the same request again gets the same answer and changes nothing."""

from __future__ import annotations

import json
from dataclasses import dataclass

from redis.asyncio import Redis
from ulid import ULID

from agent_memory.foundation.core.scope import Scope
from agent_memory.foundation.storage.connection import redis_errors
from agent_memory.foundation.storage.keyspace import Keys
from agent_memory.foundation.storage.scripts import Script

# How long an answer is kept.
KEPT_SECONDS = 24 * 3600


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """An answer as it was given: HTTP status, body, and headers as "name: value" lines."""

    status: int
    body: bytes
    headers: bytes


@dataclass(frozen=True, slots=True)
class ClaimedKey:
    """A key that is this request's; the ids that it makes follow from the seed. `holder` is what it holds its lease by."""

    seed: str
    holder: str


@dataclass(frozen=True, slots=True)
class HeldKey:
    """A key whose first request is under way: its lease ends in `lease_ms`, unless it is renewed."""

    lease_ms: int


class IdempotencyStore:
    """Answers by key, within a tenant."""

    def __init__(self, client: Redis, keys: Keys) -> None:
        self._client = client
        self._keys = keys
        self._claim = Script(client, "api/idempotency_claim")
        self._renew = Script(client, "api/idempotency_renew")
        self._keep = Script(client, "api/idempotency_keep")
        self._free = Script(client, "api/idempotency_free")

    def _name(self, scope: Scope, key: str) -> str:
        """Callers who reach different things never share an answer: the same request may mean something else to them."""
        limits = [None if limit is None else json.dumps(sorted(limit)) for limit in (scope.namespaces, scope.users, scope.agents)]
        return self._keys.idempotency(scope.tenant, key, *(limits if scope.limited else ()))

    async def claim_or_read(self, scope: Scope, key: str, request: str, lease_ms: int) -> StoredAnswer | ClaimedKey | HeldKey | None:
        """Takes a key for a request (its digest), or says what it stands for: the kept answer, a request that is under way, or
        None when it stands for another request."""
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
        """Lets the lease of a key run from now."""
        await self._renew(answer=self._name(scope, key), holder=claimed.holder, lease_ms=lease_ms)

    async def store_answer(self, scope: Scope, key: str, request: str, answer: StoredAnswer) -> None:
        """Keeps the answer for a day."""
        await self._keep(
            answer=self._name(scope, key),
            request=request,
            status=answer.status,
            body=answer.body,
            headers=answer.headers,
            ttl_seconds=KEPT_SECONDS,
        )

    async def release_key(self, scope: Scope, key: str, claimed: ClaimedKey) -> None:
        """Gives a key back whose request changed nothing; it does nothing where another request holds it by now."""
        with redis_errors():
            await self._free(answer=self._name(scope, key), holder=claimed.holder)
