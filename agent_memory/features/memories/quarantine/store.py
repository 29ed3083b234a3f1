"""Find quarantined memories. They are stored with retired ones, where default reads do not look."""

from __future__ import annotations

from redis.asyncio import Redis

from agent_memory.features.memories.upkeep.scan import Selection
from agent_memory.foundation.core.scope import Scope
from agent_memory.foundation.storage.keyspace import Keys
from agent_memory.foundation.storage.search import filters
from agent_memory.foundation.storage.search.indexes import VectorSpec, history_index_name
from agent_memory.foundation.storage.search.queries import name_query, search
from agent_memory.foundation.storage.search.syntax import all_of


class QuarantineStore:
    def __init__(self, client: Redis, keys: Keys, spec: VectorSpec) -> None:
        self._client = client
        self._index = history_index_name(keys, spec)

    async def find_quarantined(
        self, scope: Scope, namespace: str | None, user_id: str | None, offset: int, limit: int
    ) -> tuple[int, list[str]]:
        """Return the total and a page of names, newest first."""
        clause = all_of(filters.where(scope, Selection.of(namespace, user_id)), filters.IN_QUARANTINE)
        hits = await search(self._client, self._index, name_query(clause, offset, limit, sort_by=("c", "DESC")))
        return hits.total, [hit.mid for hit in hits.hits]
