"""The cost of a request: one, and more for a long body."""

from __future__ import annotations

from starlette.types import Message, Receive, Scope

from agent_memory.features.access.limits import RequestLimit

BODY_UNIT = 16 * 1024
"""Bytes of a body that cost another request: processing grows with them."""


def cost_of(scope: Scope) -> int | None:
    """Return a request's cost by its declared length; None for a body of unknown length."""
    for name, value in scope["headers"]:
        if name == b"content-length":
            # More digits exceed every body limit.
            return 1 + int(value) // BODY_UNIT if len(value) <= 12 and value.isdigit() else 1
        if name == b"transfer-encoding":
            return None
    return 1


def counted_body(receive: Receive, limit: RequestLimit, tenant: str) -> Receive:
    """Count a body of unknown length while it is read. Raises TooMany, RedisUnavailable to the reader."""
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
