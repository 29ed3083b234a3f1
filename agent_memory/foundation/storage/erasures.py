"""Refuse writes of a user, session or agent while its erasure is ordered and not done.

The write's own script checks it (`lua/parts/erasures.lua`). A refused request waits for the end (`storage/scripts.py`).
Work that uses older data names its start: an erasure that ended since then refuses it, too.
"""

from __future__ import annotations

from hashlib import sha1
from typing import Any

from redis.asyncio import Redis

from agent_memory.foundation.core.scope import current_work
from agent_memory.foundation.storage.connection import read
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
    """Return the `guard` argument of a script that writes an owner's data; without an owner the script finds it."""
    work = current_work()
    if work.erases:
        return {"root": root, "off": True}
    owner = {"t": tenant, "ns": namespace, "u": user_id, "s": session_id, "ag": agent_id}
    guard: Guard = {"root": root} | {name: tag(value) for name, value in owner.items() if value is not None}
    guard |= {} if work.since is None else {"since": work.since}
    return guard if work.waits else guard | {"background": True}


def whole_tenant_guard(root: str, tenant: str) -> Guard:
    """Return the `guard` of a write that may hold data of everybody in a tenant."""
    return guard_of(root, tenant) | {"whole": True}


def erasure_place(tenant: str, namespace: str | None, user_id: str | None, session_id: str | None, agent_id: str | None) -> str:
    """Return the name under which an erasure refuses writes; same as in `lua/parts/erasures.lua`."""
    space, anywhere = tag(namespace or ""), tag(namespace) if namespace is not None else "*"
    if agent_id is not None:
        parts = ("agent", anywhere, tag(agent_id))
    elif session_id is not None:
        parts = ("session", space, tag(user_id or ""), tag(session_id))
    else:
        parts = ("user", anywhere, tag(user_id or ""))
    return ":".join(sha1(text.encode(), usedforsecurity=False).hexdigest() for text in (tag(tenant), " ".join(parts)))


class ErasureGuard:
    """Check for erasures before writes without a script, and read Redis' time."""

    def __init__(self, client: Redis, keys: Keys) -> None:
        self._client = client
        self._keys = keys
        self._check = Script(client, "storage/erasure_check")

    async def require_none(self, tenant: str, namespace: str | None, user_id: str | None, agent_id: str | None = None) -> None:
        """Wait for the end of a running erasure. Raises ErasureUnderWay if it takes long."""
        guard = guard_of(self._keys.root, tenant, namespace, user_id, agent_id=agent_id)
        await self._check(any=self._keys.wake, guard=guard)

    async def now(self) -> int:
        """Return Redis' time in ms."""
        seconds, micros = (await read(self._client, lambda pipe: pipe.time()))[0]
        return int(seconds) * 1000 + int(micros) // 1000
