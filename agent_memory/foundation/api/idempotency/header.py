"""Apply the `Idempotency-Key` header, which every POST accepts."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from fastapi import Response
from starlette.types import Scope as AsgiScope

from agent_memory.foundation.api.idempotency.service import IdempotencyService, StoredAnswer, request_digest
from agent_memory.foundation.core import ids
from agent_memory.foundation.core.errors import RedisUnavailable
from agent_memory.foundation.core.feature import Services
from agent_memory.foundation.core.scope import Scope

log = logging.getLogger(__name__)

HEADER = b"idempotency-key"
_KEPT_HEADERS = (b"content-type", b"etag", b"x-operation-id")


def key_of(scope: AsgiScope) -> str | None:
    if scope["method"] != "POST":
        return None
    return next((value.decode("latin-1") for name, value in scope["headers"] if name == HEADER), None)


async def answered_once(
    services: Services, scope: Scope, key: str, asgi: AsgiScope, body: bytes, answer: Callable[[], Awaitable[Response]], *, keeps: bool
) -> Response:
    """Return the stored response to this request, or run the request and store its response unless an error occurs.

    Without `keeps`, store only that the key was used, and not the response's content. A repeated request then runs
    again.
    """
    service = services[IdempotencyService]
    request = request_digest(asgi["method"], asgi["path"], asgi["query_string"], body)
    claim = await service.claim_key(scope, key, request)
    if isinstance(claim, StoredAnswer):
        return _replayed(claim) if keeps else await answer()
    try:
        async with service.hold_key(scope, key, claim):
            with ids.repeatable(claim.seed):
                response = await answer()
    except BaseException:
        try:
            await service.free_key(scope, key, claim)
        except RedisUnavailable as error:
            log.warning("idempotency key not released; its lease will expire: %s", error)
        raise
    if not keeps:
        await service.keep_answer(scope, key, request, StoredAnswer(response.status_code, b"", b""))
        return response
    headers = b"\n".join(name + b": " + value for name, value in response.raw_headers if name in _KEPT_HEADERS)
    await service.keep_answer(scope, key, request, StoredAnswer(response.status_code, bytes(response.body), headers))
    return response


def _replayed(stored: StoredAnswer) -> Response:
    response = Response(stored.body, stored.status)
    pairs = (line.split(b": ", 1) for line in stored.headers.split(b"\n") if line)
    response.raw_headers = [(b"content-length", b"%d" % len(stored.body)), *((pair[0], pair[1]) for pair in pairs)]
    response.raw_headers.append((b"idempotent-replayed", b"true"))
    return response
