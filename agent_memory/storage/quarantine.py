"""Finding what is in quarantine. It stands where default reads never look, beside what is over."""

from __future__ import annotations

from redis.asyncio import Redis

from agent_memory.scope import Scope
from agent_memory.storage import filters
from agent_memory.storage.connection import read
from agent_memory.storage.indexes import VectorSpec, history_index_name
from agent_memory.storage.keys import Keys
from agent_memory.storage.queries import parse_hits
from agent_memory.storage.survey import Selection


class QuarantineStore:
    """Lists what waits for a review."""

    def __init__(self, client: Redis, keys: Keys, spec: VectorSpec) -> None:
        self._client = client
        self._index = history_index_name(keys, spec)

    async def find(self, scope: Scope, namespace: str | None, user_id: str | None, offset: int, limit: int) -> tuple[int, list[str]]:
        """How many memories there are in quarantine, and the names of a page of them, the newest first."""
        clause = filters.AND.join((filters.where(scope, Selection.of(namespace, user_id)), filters.IN_QUARANTINE))
        command = ["FT.SEARCH", self._index, clause, "NOCONTENT", "SORTBY", "c", "DESC", "LIMIT", offset, limit, "DIALECT", 2]
        hits = parse_hits((await read(self._client, lambda pipe: pipe.execute_command(*command)))[0])
        return hits.total, [hit.mid for hit in hits.hits]
