"""Find tenants with no due work and no recently changed memories."""

from __future__ import annotations

from collections.abc import Sequence

from redis.asyncio import Redis

from agent_memory.features.memories.upkeep.scan import Selection
from agent_memory.foundation.api.principals import scope_of_work
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.foundation.storage.connection import Pipe, read
from agent_memory.foundation.storage.keyspace import Keys, tag
from agent_memory.foundation.storage.search import filters
from agent_memory.foundation.storage.search.indexes import memory_index_name
from agent_memory.foundation.storage.search.queries import name_query, queue_search
from agent_memory.foundation.storage.search.results import parse_hits

QUIET_SECONDS = 300.0
# A claimed mark is due again when its lease ends, a failed one after its delay. Both count as due.
_SOON_MS = 300_000
_MOST_MARKS = 200


class IdleTenants:
    def __init__(self, client: Redis, keys: Keys) -> None:
        self._client = client
        self._keys = keys

    async def idle_tenants(self, tenants: Sequence[str], quiet_seconds: float) -> list[str]:
        """Return tenants with no pending work whose memories have not changed for `quiet_seconds`."""
        if not tenants:
            return []
        kinds = list(DueKind)

        def build(pipe: Pipe) -> None:
            pipe.time()
            for kind in kinds:
                pipe.zrange(self._keys.due(kind), 0, _MOST_MARKS, withscores=True)
            for tenant in tenants:
                clause = filters.where(scope_of_work(tenant), Selection())
                queue_search(pipe, memory_index_name(self._keys), name_query(clause, 0, 1, sort_by=("n", "DESC")))

        (seconds, micros), *replies = await read(self._client, build)
        soon = seconds * 1000 + micros // 1000 + _SOON_MS
        due = [(kind, member.decode()) for kind, marks in zip(kinds, replies, strict=False) for member, at in marks if at <= soon]
        busy = await self._owners_of(due)
        if busy is None:
            return []
        newest = [[hit.mid for hit in parse_hits(reply).hits] for reply in replies[len(kinds) :]]
        versions = await read(self._client, lambda pipe: [pipe.hget(self._keys.memory(mids[0] if mids else "-"), "n") for mids in newest])
        quiet_since = (seconds - quiet_seconds) * 1_000_000 + micros
        return [
            tenant
            for tenant, version in zip(tenants, versions, strict=True)
            if busy.isdisjoint((tenant, tag(tenant))) and version is not None and int(version) <= quiet_since
        ]

    async def _owners_of(self, due: Sequence[tuple[DueKind, str]]) -> set[str] | None:
        """Return the tenants that own this work, or None if any tenant may own it."""
        if len(due) > _MOST_MARKS or any(kind in (DueKind.DELETION, DueKind.ORDER) for kind, _ in due):
            return None

        def build(pipe: Pipe) -> None:
            for kind, member in due:
                if kind in (DueKind.MEMORY, DueKind.FOLLOW):
                    pipe.hget(self._keys.memory(member), "t")
                elif kind is DueKind.ITEM:
                    pipe.hget(self._keys.item(member), "t")
                else:
                    pipe.hget(f"{self._keys.journal_prefix}{member}", "tn")

        owners = await read(self._client, build) if due else []
        # A deleted or retired memory has no readable owner. Its mark disappears soon.
        return None if None in owners else {owner.decode() for owner in owners}
