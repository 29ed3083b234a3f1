"""POSTs under an Idempotency-Key: the same request again gets the first answer and changes nothing."""

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
"""For so long a key stays taken when the process that carries out its request dies."""
_RENEWALS = 3


class IdempotencyService:
    """Keys and the answers that were given under them, for a day, within a tenant."""

    def __init__(self, store: IdempotencyStore, *, lease_seconds: float = LEASE_SECONDS) -> None:
        self._store = store
        self._lease_seconds = lease_seconds
        self._lease_ms = round(lease_seconds * 1000)

    async def claim_key(self, scope: Scope, key: str, request: str) -> StoredAnswer | ClaimedKey:
        """The answer that was given before, or the key while there is none: `hold_key`, and `keep_answer` or `free_key`, must follow then.

        Raises BadInput for a key that does not fit or that stood for another request, RequestUnderWay while the first is under way.
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
        """Keeps the key while its request is carried out: the lease is renewed as long as this process lives."""

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
        """Keeps the answer."""
        await self._store.store_answer(scope, key, request, answer)

    async def free_key(self, scope: Scope, key: str, claimed: ClaimedKey) -> None:
        """Frees the key: the request was refused or failed, and may be tried again."""
        await self._store.release_key(scope, key, claimed)


def request_digest(method: str, path: str, query: bytes, body: bytes) -> str:
    """What makes two requests the same."""
    h = blake2b(digest_size=16)
    for part in (method.encode(), path.encode("utf-8", "surrogateescape"), query, body):
        h.update(b"%d:" % len(part))
        h.update(part)
    return h.hexdigest()
