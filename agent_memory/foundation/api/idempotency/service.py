"""POSTs under an Idempotency-Key: a repeated request gets the first answer and changes nothing."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from hashlib import blake2b

from agent_memory.foundation.api.idempotency.store import ClaimedKey, HeldKey, IdempotencyStore, StoredAnswer
from agent_memory.foundation.core.errors import BadInput, RedisUnavailable, RequestUnderWay
from agent_memory.foundation.core.scope import Scope

log = logging.getLogger(__name__)

MAX_KEY_CHARS = 255
LEASE_SECONDS = 6.0
"""A key stays locked this long after the process that runs its request dies."""
_RENEWALS = 3


class IdempotencyService:
    """Store answers under their keys for a day, within a tenant."""

    def __init__(self, store: IdempotencyStore, *, lease_seconds: float = LEASE_SECONDS) -> None:
        self._store = store
        self._lease_seconds = lease_seconds
        self._lease_ms = round(lease_seconds * 1000)

    async def claim_key(self, scope: Scope, key: str, request: str) -> StoredAnswer | ClaimedKey:
        """Return the stored answer, or claim the key: then call `hold_key`, and `keep_answer` or `free_key`.

        Raises BadInput for a malformed key or one of another request, RequestUnderWay while the first request runs.
        """
        if not 1 <= len(key) <= MAX_KEY_CHARS or not key.isascii() or not key.isprintable():
            raise BadInput(f"must be 1 to {MAX_KEY_CHARS} printable ASCII characters", field="Idempotency-Key", where="header")
        claimed = await self._store.claim_or_read(scope, key, request, self._lease_ms)
        if claimed is None:
            raise BadInput("was used for another request: use a new key", field="Idempotency-Key", where="header")
        if isinstance(claimed, HeldKey):
            seconds = max(math.ceil(claimed.lease_ms / 1000), 1)
            message = f"a request with this Idempotency-Key is under way: try again, in {seconds} s at the latest"
            raise RequestUnderWay(message, retry_after=seconds)
        return claimed

    @asynccontextmanager
    async def hold_key(self, scope: Scope, key: str, claimed: ClaimedKey) -> AsyncGenerator[None]:
        """Renew the key's lease while its request runs."""

        async def renew() -> None:
            while True:
                await asyncio.sleep(self._lease_seconds / _RENEWALS)
                try:
                    await self._store.renew_lease(scope, key, claimed, self._lease_ms)
                except RedisUnavailable as error:
                    log.warning("the lease of an idempotency key was not renewed: %s", error)

        renewing = asyncio.create_task(renew())
        try:
            yield
        finally:
            renewing.cancel()

    async def keep_answer(self, scope: Scope, key: str, request: str, answer: StoredAnswer) -> None:
        await self._store.store_answer(scope, key, request, answer)

    async def free_key(self, scope: Scope, key: str, claimed: ClaimedKey) -> None:
        """Free the key after its request was refused or failed, so that it can be retried."""
        await self._store.release_key(scope, key, claimed)


def request_digest(method: str, path: str, query: bytes, body: bytes) -> str:
    """Return a digest that is equal for equal requests."""
    h = blake2b(digest_size=16)
    for part in (method.encode(), path.encode("utf-8", "surrogateescape"), query, body):
        h.update(b"%d:" % len(part))
        h.update(part)
    return h.hexdigest()
