"""Read all matches in an index, page by page, despite concurrent writes."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator

from redis.asyncio import Redis

from agent_memory.foundation.storage.connection import read
from agent_memory.foundation.storage.search.filters import between
from agent_memory.foundation.storage.search.queries import WITH_SORT_KEYS, name_query, queue_search
from agent_memory.foundation.storage.search.results import parse_listed
from agent_memory.foundation.storage.search.syntax import all_of

PAGE = 200


async def walk(
    client: Redis, index: str, clause: str, field: str, *, low: float = -math.inf, high: float = math.inf, page: int = PAGE
) -> AsyncIterator[list[str]]:
    """Yield the names of matching documents in pages, in ascending order of `field`.

    `field` must be sortable and numeric. Deletions never cause other documents to be skipped.
    Documents that change may appear twice.
    """
    tied: set[str] = set()
    unbounded = math.isinf(low) and math.isinf(high)
    while True:
        text = clause if unbounded else all_of(clause, between(field, low, high))
        # Documents with the last value appear again. Growing the page by only their number would take quadratic time.
        limit = page + 2 * len(tied)
        query = name_query(text, 0, limit, sort_by=(field, "ASC"))
        reply = (await read(client, lambda pipe, q=query: queue_search(pipe, index, q, WITH_SORT_KEYS)))[0]
        rows = parse_listed(reply).rows
        fresh = [row.mid for row in rows if row.mid not in tied]
        for start in range(0, len(fresh), page):
            yield fresh[start : start + page]
        if len(rows) < limit:
            return
        if rows[-1].at != low:
            tied.clear()
        low, unbounded = rows[-1].at, False
        tied.update(row.mid for row in rows if row.at == low)
