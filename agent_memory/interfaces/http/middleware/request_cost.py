"""Compute the cost of a request: one unit, plus more for a long body."""

from __future__ import annotations

from starlette.types import Message, Receive, Scope

from agent_memory.features.access.limits import RequestLimit

BODY_UNIT = 16 * 1024
"""Number of body bytes that cost one more unit."""


def declared_bytes(scope: Scope) -> int | None:
    """Return the declared body length. It is 0 if there is no body and None if unknown."""
    headers = dict(scope["headers"])
    length = headers.get(b"content-length", b"0")
    if b"transfer-encoding" in headers or not length.isdigit():
        return None
    return int(length[:12])  # a length with more digits exceeds every limit


def cost_of(scope: Scope) -> int | None:
    """Return a request's cost, or None if the body's length is unknown."""
    length = declared_bytes(scope)
    return None if length is None else 1 + length // BODY_UNIT


def counted_body(receive: Receive, limit: RequestLimit, tenant: str) -> Receive:
    """Return a `receive` that counts a body of unknown length as it is read.

    Reading may raise TooMany or RedisUnavailable.
    """
    uncounted_bytes = 0

    async def receive_counted() -> Message:
        nonlocal uncounted_bytes
        message = await receive()
        uncounted_bytes += len(message.get("body", b""))
        if (units := uncounted_bytes // BODY_UNIT) > 0:
            uncounted_bytes -= units * BODY_UNIT
            await limit.admit(tenant, units)
        return message

    return receive_counted
