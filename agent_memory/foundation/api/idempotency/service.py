"""Run a POST with an Idempotency-Key only once. A repeated request gets the first response and changes nothing."""

from __future__ import annotations

import asyncio
import json
import logging
import math
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from hashlib import blake2b

from redis.asyncio import Redis
from ulid import ULID

from agent_memory.foundation.core.errors import BadInput, RedisUnavailable, RequestUnderWay
from agent_memory.foundation.core.scope import Scope
from agent_memory.foundation.storage.keyspace import Keys
from agent_memory.foundation.storage.scripts import Script

log = logging.getLogger(__name__)

MAX_KEY_CHARS = 255
LEASE_SECONDS = 6.0
"""How long a key stays locked if the process that runs the request dies."""
_RENEWALS = 3
_KEPT_SECONDS = 24 * 3600


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """A stored response: its HTTP status, body, and headers as "name: value" lines."""

    status: int
    body: bytes
    headers: bytes


@dataclass(frozen=True, slots=True)
class ClaimedKey:
    """A key that this request claimed. The request's ids derive from `seed`. `holder` identifies the lease holder."""

    seed: str
    holder: str


class IdempotencyService:
    """Store each response under its tenant and idempotency key for a day."""

    def __init__(self, client: Redis, keys: Keys, *, lease_seconds: float = LEASE_SECONDS) -> None:
        self._keys = keys
        self._claim = Script(client, "api/idempotency_claim")
        self._renew = Script(client, "api/idempotency_renew")
        self._keep = Script(client, "api/idempotency_keep")
        self._free = Script(client, "api/idempotency_free")
        self._lease_seconds = lease_seconds
        self._lease_ms = round(lease_seconds * 1000)

    def _name(self, scope: Scope, key: str) -> str:
        """Return the Redis key for an idempotency key.

        Callers with different limits never share a response, because the same request may refer to different data.
        """
        limits = [None if limit is None else json.dumps(sorted(limit)) for limit in (scope.namespaces, scope.users, scope.agents)]
        return self._keys.idempotency(scope.tenant, key, *(limits if scope.limited else ()))

    async def claim_key(self, scope: Scope, key: str, request: str) -> StoredAnswer | ClaimedKey:
        """Return the stored response, or claim the key. After a claim, use `hold_key`, and `keep_answer` or `free_key`.

        Raises BadInput if the key is malformed or was used for another request, and RequestUnderWay while the first
        request runs.
        """
        if not 1 <= len(key) <= MAX_KEY_CHARS or not key.isascii() or not key.isprintable():
            raise BadInput(f"must be 1 to {MAX_KEY_CHARS} printable ASCII characters", field="Idempotency-Key", where="header")
        holder = str(ULID())
        reply = await self._claim(
            answer=self._name(scope, key),
            request=request,
            lease_ms=self._lease_ms,
            ttl_seconds=_KEPT_SECONDS,
            seed=str(ULID()),
            holder=holder,
        )
        match reply[0]:
            case b"done":
                return StoredAnswer(int(reply[1]), reply[2], reply[3])
            case b"new":
                return ClaimedKey(reply[1].decode(), holder)
            case b"underway":
                seconds = max(math.ceil(int(reply[1]) / 1000), 1)
                message = f"a request with this Idempotency-Key is under way: try again, in {seconds} s at the latest"
                raise RequestUnderWay(message, retry_after=seconds)
            case _:
                raise BadInput("was used for another request: use a new key", field="Idempotency-Key", where="header")

    @asynccontextmanager
    async def hold_key(self, scope: Scope, key: str, claimed: ClaimedKey) -> AsyncGenerator[None]:
        """Renew the key's lease while the request in this context runs."""

        async def renew() -> None:
            while True:
                await asyncio.sleep(self._lease_seconds / _RENEWALS)
                try:
                    await self._renew(answer=self._name(scope, key), holder=claimed.holder, lease_ms=self._lease_ms)
                except RedisUnavailable as error:
                    log.warning("lease of an idempotency key not renewed: %s", error)

        renewing = asyncio.create_task(renew())
        try:
            yield
        finally:
            renewing.cancel()

    async def keep_answer(self, scope: Scope, key: str, request: str, answer: StoredAnswer) -> None:
        await self._keep(
            answer=self._name(scope, key),
            request=request,
            status=answer.status,
            body=answer.body,
            headers=answer.headers,
            ttl_seconds=_KEPT_SECONDS,
        )

    async def free_key(self, scope: Scope, key: str, claimed: ClaimedKey) -> None:
        """Free the key of a rejected or failed request. Do nothing if another request now holds the key."""
        await self._free(answer=self._name(scope, key), holder=claimed.holder)


def request_digest(method: str, path: str, query: bytes, body: bytes) -> str:
    """Return a digest of the request. Equal requests have the same digest."""
    h = blake2b(digest_size=16)
    for part in (method.encode(), path.encode("utf-8", "surrogateescape"), query, body):
        h.update(b"%d:" % len(part))
        h.update(part)
    return h.hexdigest()
