"""Who is being erased: what would write data of a user, session or agent while its erasure is ordered and not done is refused.

The script of the write makes the check (`lua/parts/erasures.lua`), so nothing is written between the order and its end. A refused request
waits for the end (`storage/scripts.py`) and is carried out then. Work that takes data from before (`core/scope.py`) names the time at which
it began: an erasure that ended since then refuses it, too.
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
    """The `guard` argument of a script that writes data of an owner; without one the script finds the owners itself."""
    work = current_work()
    if work.erases:
        return {"root": root, "off": True}
    owner = {"t": tenant, "ns": namespace, "u": user_id, "s": session_id, "ag": agent_id}
    guard: Guard = {"root": root} | {name: tag(value) for name, value in owner.items() if value is not None}
    guard |= {} if work.since is None else {"since": work.since}
    return guard if work.waits else guard | {"background": True}


def whole_tenant_guard(root: str, tenant: str) -> Guard:
    """The `guard` of a write that may hold data of everybody in a tenant."""
    return guard_of(root, tenant) | {"whole": True}


def erasure_place(tenant: str, namespace: str | None, user_id: str | None, session_id: str | None, agent_id: str | None) -> str:
    """The name under which an order to erase refuses writes: `lua/parts/erasures.lua` makes the same of an owner."""
    space, anywhere = tag(namespace or ""), tag(namespace) if namespace is not None else "*"
    if agent_id is not None:
        parts = ("agent", anywhere, tag(agent_id))
    elif session_id is not None:
        parts = ("session", space, tag(user_id or ""), tag(session_id))
    else:
        parts = ("user", anywhere, tag(user_id or ""))
    return ":".join(sha1(text.encode(), usedforsecurity=False).hexdigest() for text in (tag(tenant), " ".join(parts)))


class ErasureGuard:
    """The same check before writes that are no scripts, and the time by which work says when it began."""

    def __init__(self, client: Redis, keys: Keys) -> None:
        self._client = client
        self._keys = keys
        self._check = Script(client, "storage/erasure_check")

    async def require_none(self, tenant: str, namespace: str | None, user_id: str | None, agent_id: str | None = None) -> None:
        """Waits for the end of an erasure that is under way. Raises ErasureUnderWay when that takes long."""
        guard = guard_of(self._keys.root, tenant, namespace, user_id, agent_id=agent_id)
        await self._check(any=self._keys.wake, guard=guard)

    async def now(self) -> int:
        """Redis' time in ms."""
        seconds, micros = (await read(self._client, lambda pipe: pipe.time()))[0]
        return int(seconds) * 1000 + int(micros) // 1000
