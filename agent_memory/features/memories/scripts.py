"""Run the Lua scripts for memories. Each writing script is one atomic change, and schedules its follow-up work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from redis.asyncio import Redis

from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.foundation.storage.erasures import guard_of
from agent_memory.foundation.storage.keyspace import Keys
from agent_memory.foundation.storage.scripts import Arg, Script, outbox_keys
from agent_memory.foundation.text.retrieval_units import REACH

_TOMBSTONE_SECONDS = 30 * 24 * 3600


class MemoryScripts:
    def __init__(self, client: Redis, keys: Keys, *, fsync: bool = False, neighbors_ms: int = 0) -> None:
        """With `fsync`, Redis writes callers' changes to disk before it replies.

        The messages next to a new message are indexed again after `neighbors_ms`.
        """
        self._keys = keys
        self._outbox = outbox_keys(keys, DueKind.MEMORY)
        self._neighbors_ms = neighbors_ms
        self._commit = Script(client, "memories/memory_commit", fsync=fsync)
        self._owners = Script(client, "memories/memory_owners")
        self._index = Script(client, "memories/memory_index")
        self._sweep = Script(client, "memories/memory_sweep")
        self._delete = Script(client, "memories/memory_delete", fsync=fsync)

    async def commit_steps(
        self,
        groups: Sequence[Mapping[str, Any]],
        values: Sequence[Arg],
        *,
        atomic: bool,
        fence: Mapping[str, Any] | None,
        revised: Mapping[str, Any] | None,
        embed_after_ms: int = 0,
    ) -> list[str]:
        """Run `memory_commit.lua`. Raises ErasureUnderWay.

        Return "ok" and the state of each step, or the reason why the script refused the batch.
        """
        reply = await self._commit(
            **self._outbox,
            wake=self._keys.wake,
            root=self._keys.root,
            reach=REACH,
            neighbors_ms=self._neighbors_ms,
            embed_after_ms=embed_after_ms,
            atomic=atomic,
            guard=guard_of(self._keys.root),
            fence=fence,
            revised=revised,
            groups=groups,
            values=values,
        )
        return [word.decode() for word in reply]

    async def owners_of(self, mids: Sequence[str]) -> list[str | None]:
        """Return the owner of each mid, or None if the id is not in use."""
        reply = await self._owners(any=self._keys.config, root=self._keys.root, mids=mids)
        return [None if owner == b"-" else owner.decode() for owner in reply]

    async def sweep_ended(self, mids: Sequence[str]) -> int:
        """Move memories whose end has passed to the history, and return their number."""
        return int(await self._sweep(**self._outbox, root=self._keys.root, mids=mids))

    async def write_index(self, documents: Sequence[str], memories: Sequence[Arg]) -> list[bool]:
        """Write vectors and index terms. Return True for each memory whose version had not changed."""
        reply = await self._index(**self._outbox, documents=documents, root=self._keys.root, memories=memories)
        return [bool(written) for written in reply]

    async def delete_memories(self, memories: Sequence[Arg]) -> list[bool]:
        """Permanently delete memories. Return True for each memory that existed."""
        reply = await self._delete(
            **self._outbox, root=self._keys.root, tombstone_seconds=_TOMBSTONE_SECONDS, reach=REACH, memories=memories
        )
        return [bool(deleted) for deleted in reply]
