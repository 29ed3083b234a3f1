"""Record imported lines, so that a repeated import does not restore deleted data."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from typing import NamedTuple

from redis.asyncio import Redis

from agent_memory.foundation.core.feature import AgentOwner, Owner
from agent_memory.foundation.core.scope import Scope
from agent_memory.foundation.storage.connection import read, redis_errors
from agent_memory.foundation.storage.erasures import guard_of
from agent_memory.foundation.storage.keyed_ids import KeyedIds
from agent_memory.foundation.storage.keyspace import Keys, digest
from agent_memory.foundation.storage.scripts import Script

_KEEP_SECONDS = 30 * 24 * 3600
_BATCH = 1000
_NAME_CHARS = 12
# Values that differ in each run: the time at which it created a line, and the time until a session expires.
_VOLATILE = re.compile(rb'"(ra|seconds_left)": ?"?[0-9.]+"?')
# The times of an undated line come from its file.
_UNDATED = b'{"undated":true,'
_FILE_TIMES = re.compile(rb'"(created_at|updated_at|last_accessed|n|h)": ?"[^"]*"')


class ImportOwner(NamedTuple):
    """The owner to assign to imported lines.

    If both ids are None, lines keep their owners. If `namespace` is None, they keep their
    namespaces.
    """

    namespace: str | None
    user_id: str | None
    agent_id: str | None


class ImportProgress:
    """Stores marks of imported lines, in one set per owner.

    Set members have the form "<import>:<namespace>:<mark>". One of the marks is the
    owner, encoded as JSON.
    """

    def __init__(self, client: Redis, keys: Keys, ids: KeyedIds) -> None:
        self._client = client
        self._keys = keys
        self._ids = ids
        self._note = Script(client, "transfer/arrival_note")

    def mark_of(self, owner: ImportOwner, raw: bytes) -> str:
        """Return a line's mark, which ignores values that differ between runs."""
        raw = _FILE_TIMES.sub(b"", raw) if raw.startswith(_UNDATED) else raw
        return self._ids.of(*owner, _VOLATILE.sub(b"", raw).decode("utf-8", "replace").strip())

    async def begin(self, scope: Scope, source: str, owner: ImportOwner) -> None:
        """Record that the owner receives data from an import. Raises ErasureUnderWay."""
        await self.note(scope, source, owner, [])

    async def arrived(self, scope: Scope, source: str, owner: ImportOwner, marks: Sequence[str]) -> set[str]:
        """Return the marks of lines that were already imported."""
        if not marks:
            return set()
        key, members = self._arrived(self._owner_id(scope, owner)), self._members(scope, source, owner, marks)
        flags = (await read(self._client, lambda pipe: pipe.smismember(key, members)))[0]
        return {mark for mark, has_arrived in zip(marks, flags, strict=True) if has_arrived}

    async def note(self, scope: Scope, source: str, owner: ImportOwner, marks: Sequence[str]) -> None:
        """Record imported lines and their owner. Raises ErasureUnderWay."""
        name = self._owner_id(scope, owner)
        guard = guard_of(self._keys.root, scope.tenant, owner.namespace, owner.user_id, agent_id=owner.agent_id)
        keys = {"arrived": self._arrived(name), "arrivals": self._arrivals(scope, source)}
        members = self._members(scope, source, owner, [json.dumps(owner), *marks])
        for start in range(0, len(members), _BATCH):
            await self._note(**keys, owner=name, seconds=_KEEP_SECONDS, guard=guard, members=members[start : start + _BATCH])

    async def owners(self, scope: Scope, source: str) -> list[ImportOwner]:
        """Return the owners of an import's data who are in the caller's scope."""
        names = (await read(self._client, lambda pipe: pipe.smembers(self._arrivals(scope, source))))[0]
        members = [member for name in names for member in await self._scan(scope, source, name.decode())]
        owners = [owner for member in members if (owner := _named(member)) is not None]
        return [owner for owner in owners if scope.reaches(owner.namespace, owner.user_id)]

    async def forget(self, scope: Scope, source: str, owners: Sequence[ImportOwner]) -> None:
        """Delete these owners' marks after an undo."""
        for owner in owners:
            name = self._owner_id(scope, owner)
            (prefix,) = self._members(scope, source, owner, [""])
            members = await self._scan(scope, source, name)
            await self._delete(name, [member for member in members if member.startswith(prefix.encode())])
            if all(member.startswith(prefix.encode()) for member in members):
                with redis_errors():
                    await self._client.srem(self._arrivals(scope, source), name)

    async def erase_owner(self, scope: Scope, owner: Owner) -> Counter[str]:
        """Delete a user's import records. Returns an empty counter."""
        await self._erase(scope, ImportOwner(owner.namespace, owner.user_id, None))
        return Counter()

    async def erase_agent(self, scope: Scope, owner: AgentOwner) -> Counter[str]:
        await self._erase(scope, ImportOwner(owner.namespace, None, owner.agent_id))
        return Counter()

    async def _erase(self, scope: Scope, owner: ImportOwner) -> None:
        name = self._owner_id(scope, owner)
        if owner.namespace is None:
            with redis_errors():
                await self._client.unlink(self._arrived(name))
        else:
            await self._delete(name, [member async for member in self._walk(name, f"*:{self._short(owner.namespace)}:*")])

    async def _delete(self, name: str, members: Sequence[bytes]) -> None:
        for start in range(0, len(members), _BATCH):
            with redis_errors():
                await self._client.srem(self._arrived(name), *members[start : start + _BATCH])

    async def _scan(self, scope: Scope, source: str, name: str) -> list[bytes]:
        return [member async for member in self._walk(name, f"{self._short('import', scope.tenant, source)}:*")]

    async def _walk(self, name: str, pattern: str) -> AsyncIterator[bytes]:
        with redis_errors():
            async for member in self._client.sscan_iter(self._arrived(name), match=pattern, count=_BATCH):
                yield member

    def _members(self, scope: Scope, source: str, owner: ImportOwner, marks: Sequence[str]) -> list[str]:
        place = f"{self._short('import', scope.tenant, source)}:{self._short(owner.namespace)}"
        return [f"{place}:{mark}" for mark in marks]

    def _short(self, *parts: str | None) -> str:
        return self._ids.of(*parts)[-_NAME_CHARS:]

    def _owner_id(self, scope: Scope, owner: ImportOwner) -> str:
        return digest(self._ids.of("arrived", scope.tenant, owner.user_id, owner.agent_id))

    def _arrived(self, name: str) -> str:
        return f"{self._keys.root}arrived:{name}"

    def _arrivals(self, scope: Scope, source: str) -> str:
        return f"{self._keys.root}arrivals:{digest(scope.tenant, source)}"


def _named(member: bytes) -> ImportOwner | None:
    """Parse the owner from a set member, or return None if it contains a line's mark."""
    mark = member.split(b":", 2)[2]
    return ImportOwner(*json.loads(mark)) if mark.startswith(b"[") else None
