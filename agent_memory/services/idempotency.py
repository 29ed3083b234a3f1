"""POSTs under an Idempotency-Key: the same request again gets the first answer and changes nothing."""

from __future__ import annotations

from hashlib import blake2b

from agent_memory.errors import BadInput, Conflict
from agent_memory.scope import Scope
from agent_memory.storage.idempotency import Claimed, IdempotencyStore, KeptAnswer

MAX_KEY_CHARS = 255


class IdempotencyService:
    """Keys and the answers that were given under them, for a day, within a tenant."""

    def __init__(self, store: IdempotencyStore) -> None:
        self._store = store

    async def begin(self, scope: Scope, key: str, request: str) -> KeptAnswer | Claimed:
        """The answer that was given before, or the key, when there is none yet: then `finish` or `abandon` must follow.

        Raises BadInput for a key that does not fit or that stood for another request, Conflict while the first is under way.
        """
        if not 1 <= len(key) <= MAX_KEY_CHARS or not key.isascii() or not key.isprintable():
            raise BadInput(f"must be 1 to {MAX_KEY_CHARS} printable ASCII characters", field="Idempotency-Key", where="header")
        found = await self._store.claim(scope, key, request)
        if not isinstance(found, str):
            return found
        if found == "other":
            raise BadInput("was used for another request: use a new key", field="Idempotency-Key", where="header")
        raise Conflict("a request with this Idempotency-Key is under way: try again in a moment")

    async def finish(self, scope: Scope, key: str, request: str, answer: KeptAnswer) -> None:
        """Keeps the answer."""
        await self._store.keep(scope, key, request, answer)

    async def abandon(self, scope: Scope, key: str, request: str) -> None:
        """Frees the key: the request was refused or failed, and may be tried again."""
        await self._store.free(scope, key, request)


def request_digest(method: str, path: str, query: bytes, body: bytes) -> str:
    """What makes two requests the same."""
    h = blake2b(digest_size=16)
    for part in (method.encode(), path.encode("utf-8", "surrogateescape"), query, body):
        h.update(b"%d:" % len(part))
        h.update(part)
    return h.hexdigest()
