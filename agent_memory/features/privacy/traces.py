"""Erase a user's traces outside of sessions and current memories.

These functions scan the entire store, so call them only from workers.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from redis.asyncio import Redis

from agent_memory.features.jobs.erasure_orders import Erasure
from agent_memory.features.memories.records import StoredEvidence, StoredMemory
from agent_memory.features.memories.steps import MemoryScripts, StepGroups
from agent_memory.features.memories.store import MemoryStore
from agent_memory.features.privacy.erasure_store import ErasedMemory, ErasureStore, erased_where
from agent_memory.features.privacy.lineage import delete_versions
from agent_memory.foundation.core.scope import Scope
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.foundation.storage.connection import Pipe, read, redis_errors, write
from agent_memory.foundation.storage.keyspace import Keys
from agent_memory.foundation.storage.scripts import Arg
from agent_memory.foundation.storage.search.indexes import VectorSpec, history_index_name, memory_index_name
from agent_memory.foundation.storage.search.pagination import walk

_COUNT = 100


class TraceStore:
    def __init__(
        self, client: Redis, keys: Keys, memories: MemoryStore, erasures: ErasureStore, scripts: MemoryScripts, spec: VectorSpec
    ) -> None:
        self._client = client
        self._erasures = erasures
        self._scripts = scripts
        self._words = memory_index_name(keys)
        self._keys = keys
        self._memories = memories
        self._history = history_index_name(keys, spec)

    async def forget_past(self, scope: Scope, erasure: Erasure, unreadable: Callable[[str], None]) -> int:
        """Delete ended memories and former versions covered by an order. Return the number deleted.

        `unreadable` is called with the key of each unreadable version.
        """
        removed = 0
        while versions := await self._erasures.page(scope, erasure, past=True):
            for version in versions:
                if version.record is None:
                    unreadable(f"h:{version.name}")
            await self._forget_versions(scope, versions)
            removed += len(versions)
        return removed

    async def forget_evidence(self, scope: Scope, erasure: Erasure, unreadable: Callable[[str], None]) -> int:
        """Remove the erased session's evidence from other memories. Return the number removed.

        `unreadable` is called with the key of each unreadable memory.
        """
        clause = erased_where(scope, erasure)
        removed = 0
        for index in (self._words, self._history):
            async for names in walk(self._client, index, clause, "c"):
                removed += await self._disown(scope, erasure, [name for name in names if "." not in name], unreadable)
        return removed

    async def _disown(self, scope: Scope, erasure: Erasure, names: Sequence[str], unreadable: Callable[[str], None]) -> int:
        try:
            return await self._disown_all(scope, erasure, [memory for memory in await self._memories.load_by_names(scope, names) if memory])
        except ValueError:
            if len(names) > 1:
                return sum([await self._disown(scope, erasure, [name], unreadable) for name in names])
            unreadable(f"m:{names[0]}")
            return 0

    async def _disown_all(self, scope: Scope, erasure: Erasure, memories: Sequence[StoredMemory]) -> int:
        rows = await read(self._client, lambda pipe: [pipe.hgetall(self._keys.evidence(memory.mid)) for memory in memories])
        steps = StepGroups(self._keys, scope.tenant, atomic=False)
        removed = 0
        for memory, row in zip(memories, rows, strict=True):
            if (memory.record.namespace, memory.record.user_id) != (erasure.namespace, erasure.user_id):
                continue
            for name, raw in row.items():
                piece = StoredEvidence.model_validate_json(raw)
                if piece.session_id == erasure.session_id:
                    steps.add_group(steps.remove_evidence(memory, name.decode(), piece))
                    removed += 1
        if removed:
            await steps.run_steps(self._scripts)
        return removed

    async def _forget_versions(self, scope: Scope, versions: Sequence[ErasedMemory]) -> None:
        mids = [version.name.partition(".")[0] for version in versions]

        def build(pipe: Pipe) -> None:
            for mid in mids:
                pipe.exists(self._keys.memory(mid))
                pipe.exists(self._keys.history(mid))

        exists_flags = await read(self._client, build)
        whole = [
            version
            for version, now, ended in zip(versions, exists_flags[::2], exists_flags[1::2], strict=True)
            # If the memory exists in a later version, it now belongs to another owner: delete only these versions.
            if not now and (not ended or "." not in version.name)
        ]
        await self.drop_memories(scope, [replace(version, version=0) for version in whole])
        await delete_versions(self._client, self._keys, [version.name for version in versions])

    async def drop_memories(self, scope: Scope, memories: Sequence[ErasedMemory]) -> int:
        """Permanently delete memories, even unreadable ones. Return the number deleted.

        Memories whose version has changed are skipped. A `version` of 0 matches any version.
        """
        try:
            readable = [(memory.record, memory.version or None) for memory in memories if memory.record is not None]
            removed = sum(await self._memories.drop_records(scope, readable))
            unread = [memory for memory in memories if memory.record is None]
        except ValueError:  # With unreadable evidence, we do not know which other keys refer to a memory.
            removed, unread = 0, list(memories)
        args: list[Arg] = [part for memory in unread for part in (memory.name.partition(".")[0], memory.version or "", "", "")]
        return removed + (sum(await self._memories.run_deletion(args)) if args else 0)

    async def forget_answers(self, scope: Scope, name: str) -> int:
        """Delete the tenant's stored responses that may contain the name. Return how many."""
        spelled = {json.dumps(name).encode(), json.dumps(name, ensure_ascii=False).encode()}
        deleted = 0
        async for key in self._each("idem:*"):
            ((tenant, body),) = await read(self._client, lambda pipe, key=key: pipe.hmget(key, "t", "b"))
            if tenant == scope.tenant.encode() and body is not None and any(name in body for name in spelled):
                # Keep the seed: if the answer is another user's, a repeated request makes the same ids, and adds nothing.
                await write(self._client, lambda pipe, key=key: pipe.hdel(key, "s", "b", "h", "q", "u", "o"))
                deleted += 1
        return deleted

    async def forget_orders(self, scope: Scope, covers: Callable[[Any], bool]) -> int:
        """Delete the tenant's orders for which `covers` returns true. Return the number deleted."""
        deleted = 0
        async for key in self._each("ord:*"):
            (raw,) = await read(self._client, lambda pipe, key=key: pipe.get(key))
            body = {} if raw is None else json.loads(raw)
            if body.get("tn") != scope.tenant or not covers(body):
                continue
            name = key.decode().rpartition(":")[2]

            def build(pipe: Pipe, key: bytes = key, name: str = name) -> None:
                pipe.delete(key)
                for marks in (self._keys.due, self._keys.dead):
                    pipe.zrem(marks(DueKind.ORDER), name)
                for fields in (self._keys.tries, self._keys.why):
                    pipe.hdel(fields(DueKind.ORDER), name)

            await write(self._client, build, atomic=True)
            deleted += 1
        return deleted

    async def forget_claims(self, scope: Scope) -> None:
        """Delete the tenant's running-task counts. It may exceed its share temporarily."""
        await write(self._client, lambda pipe: pipe.delete(*(self._keys.running(kind, scope.tenant) for kind in DueKind)))

    async def rewrite_log(self) -> None:
        """Ask Redis to rewrite its append-only file. Ignores errors."""
        try:
            await self._client.bgrewriteaof()
        except Exception:  # noqa: BLE001 - the data is already deleted; a managed Redis may forbid this, or a rewrite is already running
            return

    async def _each(self, pattern: str) -> AsyncIterator[bytes]:
        with redis_errors():
            async for key in self._client.scan_iter(match=self._keys.root.replace("{", "\\{") + pattern, count=_COUNT):
                yield key


def is_order_of_user(order: Any, user_id: str) -> bool:
    """True if an order covers only this user, or if its receipt may mention the user."""
    owner = order["args"].get("user_id")
    if owner == user_id or order["uss"] == [user_id]:
        return True
    may_list = owner is None and "ids" in order
    return "done" in order and (may_list or user_id in (order["uss"] or ()) or _requests(order, user_id))


def is_order_of_agent(order: Any, agent_id: str) -> bool:
    """True if an order is finished and its receipt may mention the agent."""
    return "done" in order and ("ids" in order or _requests(order, agent_id))


def _requests(order: Any, name: str) -> bool:
    return name in _texts(json.loads(order["args"].get("what") or "null"))


def _texts(value: Any) -> Iterator[str]:
    """Yield all strings in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)
