"""Reject writes to an owner's data while an erasure is pending or running.

The script that writes the data performs the check (`lua/parts/erasures.lua`). Work with a start
time (`Work.since`) is also rejected if an erasure ended after that time.
"""

from __future__ import annotations

from hashlib import sha1
from typing import Any

from redis.asyncio import Redis

from agent_memory.foundation.core.scope import current_work
from agent_memory.foundation.storage.connection import server_ms
from agent_memory.foundation.storage.keyspace import Keys, tag
from agent_memory.foundation.storage.scripts import Script

Guard = dict[str, Any]


def guard_of(
    root: str,
    tenant: str | None = None,
    namespace: str | None = None,
    user_id: str | None = None,
    session_id: str | None = None,
    agent_id: str | None = None,
) -> Guard:
    """Return the `guard` argument for a script that writes an owner's data.

    If no owner is given, the script reads the owner from the stored document.
    """
    work = current_work()
    if work.erases:
        return {"root": root, "off": True}
    owner = {"t": tenant, "ns": namespace, "u": user_id, "s": session_id, "ag": agent_id}
    guard: Guard = {"root": root} | {name: tag(value) for name, value in owner.items() if value is not None}
    guard |= {} if work.since is None else {"since": work.since}
    return guard if work.waits else guard | {"background": True}


def whole_tenant_guard(root: str, tenant: str) -> Guard:
    """Return the `guard` for writing any owner's data in the tenant."""
    return guard_of(root, tenant) | {"whole": True}


def erasure_place(tenant: str, namespace: str | None, user_id: str | None, session_id: str | None, agent_id: str | None) -> str:
    """Return the name that identifies an owner in sets of erasures."""
    # `lua/parts/erasures.lua` builds the same name.
    space, anywhere = tag(namespace or ""), tag(namespace) if namespace is not None else "*"
    if agent_id is not None:
        parts = ("agent", anywhere, tag(agent_id))
    elif session_id is not None:
        parts = ("session", space, tag(user_id or ""), tag(session_id))
    else:
        parts = ("user", anywhere, tag(user_id or ""))
    return ":".join(sha1(text.encode(), usedforsecurity=False).hexdigest() for text in (tag(tenant), " ".join(parts)))


class ErasureGuard:
    """Checks for erasures before writes that do not use a script."""

    def __init__(self, client: Redis, keys: Keys) -> None:
        self._client = client
        self._keys = keys
        self._check = Script(client, "storage/erasure_check")

    async def require_none(self, tenant: str, namespace: str | None, user_id: str | None, agent_id: str | None = None) -> None:
        """Wait until no erasure of the owner's data is running.

        Call this before each write of personal data. In a request, raises ErasureUnderWay (409) if
        the erasure is more than 3 seconds old. In a job, raises it immediately, or if an erasure
        ended since the attempt began. That attempt does not count.
        """
        guard = guard_of(self._keys.root, tenant, namespace, user_id, agent_id=agent_id)
        await self._check(any=self._keys.wake, guard=guard)

    async def now(self) -> int:
        """Return the Redis server's time in ms since 1970."""
        return await server_ms(self._client)
