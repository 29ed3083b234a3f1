"""Replay the stored response when a POST repeats an Idempotency-Key."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING

from redis.asyncio import Redis
from ulid import ULID

from agent_memory.foundation.core import ids
from agent_memory.foundation.core.errors import BadInput, RedisUnavailable, RequestUnderWay
from agent_memory.foundation.core.logs import get_logger
from agent_memory.foundation.core.scope import Scope
from agent_memory.foundation.storage.keyspace import Keys
from agent_memory.foundation.storage.scripts import Script

if TYPE_CHECKING:  # workers do not load Starlette
    from starlette.responses import Response

log = get_logger(__name__)

MAX_KEY_CHARS = 255
LEASE_SECONDS = 6.0
"""How long a key stays locked if its process dies."""
_RENEWALS = 3
_TTL_SECONDS = 24 * 3600
_STORED_HEADERS = (b"content-type", b"etag", b"x-operation-id")


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """A stored response. Its headers are "name: value" lines."""

    status: int
    body: bytes
    headers: bytes


class IdempotencyService:
    """Stores each response for a day under its tenant and idempotency key."""

    def __init__(self, client: Redis, keys: Keys, *, lease_seconds: float = LEASE_SECONDS) -> None:
        self._keys = keys
        self._claim = Script(client, "api/idempotency_claim")
        self._renew = Script(client, "api/idempotency_renew")
        self._keep = Script(client, "api/idempotency_keep")
        self._free = Script(client, "api/idempotency_free")
        self._lease_seconds = lease_seconds
        self._lease_ms = round(lease_seconds * 1000)

    async def answer_once(
        self,
        scope: Scope,
        key: str,
        request: str,
        answer: Callable[[], Awaitable[Response]],
        *,
        keeps: bool,
        reduce: Callable[[bytes], bytes] | None = None,
    ) -> Response | StoredAnswer:
        """Return the stored response, or run the request and store its response.

        Failed requests are not stored. If `keeps` is false, a repeated request runs again. With
        `reduce`, the stored body is its result.

        Raises BadInput if the key is malformed or was used for a different request. Raises
        RequestUnderWay if the first request is still running.
        """
        if not 1 <= len(key) <= MAX_KEY_CHARS or not key.isascii() or not key.isprintable():
            raise BadInput(f"must be 1 to {MAX_KEY_CHARS} printable ASCII characters", field="Idempotency-Key", where="header")
        name, holder = self._name(scope, key), str(ULID())
        claim = {"lease_ms": self._lease_ms, "ttl_seconds": _TTL_SECONDS, "seed": str(ULID()), "holder": holder, "tenant": scope.tenant}
        state, *reply = await self._claim(answer=name, request=request, **claim)
        if state == b"done":
            return StoredAnswer(int(reply[0]), reply[1], reply[2]) if keeps else await answer()
        if state == b"underway":
            seconds = max(math.ceil(int(reply[0]) / 1000), 1)
            message = f"a request with this Idempotency-Key is under way: try again, in {seconds} s at the latest"
            raise RequestUnderWay(message, retry_after=seconds)
        if state == b"other":
            raise BadInput("was used for another request: use a new key", field="Idempotency-Key", where="header")
        response = await self._run(name, holder, reply[0].decode(), answer)
        stored_headers = [name + b": " + value for name, value in response.raw_headers if keeps and name in _STORED_HEADERS]
        body = bytes(response.body) if keeps else b""
        if reduce is not None:
            body = reduce(body)
        stored = {"status": response.status_code, "body": body, "headers": b"\n".join(stored_headers), "ttl_seconds": _TTL_SECONDS}
        await self._keep(answer=name, request=request, **stored)
        return response

    async def _run(self, name: str, holder: str, seed: str, answer: Callable[[], Awaitable[Response]]) -> Response:
        renewing = asyncio.create_task(self._renew_lease(name, holder))
        try:
            with ids.repeatable(seed):
                return await answer()
        except BaseException:
            try:
                await self._free(answer=name, holder=holder)
            except RedisUnavailable as error:
                log.warning("idempotency key not released; its lease will expire", error=error)
            raise
        finally:
            renewing.cancel()

    async def _renew_lease(self, name: str, holder: str) -> None:
        while True:
            await asyncio.sleep(self._lease_seconds / _RENEWALS)
            try:
                await self._renew(answer=name, holder=holder, lease_ms=self._lease_ms)
            except RedisUnavailable as error:
                log.warning("lease of an idempotency key not renewed", error=error)

    def _name(self, scope: Scope, key: str) -> str:
        """Return the Redis key. Callers limited to different data get different keys."""
        limits = [None if limit is None else json.dumps(sorted(limit)) for limit in (scope.namespaces, scope.users, scope.agents)]
        return self._keys.idempotency(scope.tenant, key, *(limits if scope.limited else ()))


def request_digest(method: str, path: str, query: bytes, body: bytes) -> str:
    """Return a digest that is the same for identical requests."""
    h = blake2b(digest_size=16)
    for part in (method.encode(), path.encode("utf-8", "surrogateescape"), query, body):
        h.update(b"%d:" % len(part))
        h.update(part)
    return h.hexdigest()
