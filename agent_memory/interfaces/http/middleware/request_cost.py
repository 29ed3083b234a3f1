"""How many of a tenant's requests one counts for: one, and more for a long body."""

from __future__ import annotations

from starlette.types import Message, Receive, Scope

from agent_memory.features.access.limits import RequestLimit

BODY_UNIT = 16 * 1024
"""A request counts once more for so many bytes of its body: what it costs to read, count and remember grows with them."""


def cost_of(scope: Scope) -> int | None:
    """How many requests one counts for, by the length that it declares; None when it declares none, but has a body."""
    for name, value in scope["headers"]:
        if name == b"content-length":
            # A number of more digits is beyond every limit of a body, and refused for that.
            return 1 + int(value) // BODY_UNIT if len(value) <= 12 and value.isdigit() else 1
        if name == b"transfer-encoding":
            return None
    return 1


def counted_body(receive: Receive, limit: RequestLimit, tenant: str) -> Receive:
    """Counts a body of unknown length while it is read, at the same price. Raises TooMany, RedisUnavailable to whoever reads."""
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
