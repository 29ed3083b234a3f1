"""Walks over an index: everything that matches, page by page in the order of one field, while others write. For exports."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from redis.asyncio import Redis

from agent_memory.storage.connection import read
from agent_memory.storage.queries import parse_hits

PAGE = 200


async def walk(
    client: Redis, index: str, clause: str, field: str, *, low: str | None = None, high: str = "+inf", page: int = PAGE
) -> AsyncIterator[list[str]]:
    """The names of all documents that match (as `Hit.mid` has them), ascending by a sortable numeric field, from `low` to `high`.

    What is deleted between two pages takes no other's turn: each page begins where the last one ended. What changes meanwhile may come
    twice. Held are one page and the names of those that share its last value.
    """
    tied: set[str] = set()
    while True:
        text = clause if low is None and high == "+inf" else f"{clause} @{field}:[{low or '-inf'} {high}]"
        most = page + len(tied)
        command: list[Any] = ["FT.SEARCH", index, text, "NOCONTENT", "WITHSORTKEYS", "SORTBY", field, "ASC", "LIMIT", 0, most, "DIALECT", 2]
        reply = (await read(client, lambda pipe, c=command: pipe.execute_command(*c)))[0]
        names = [hit.mid for hit in parse_hits(reply).hits]
        # Sort keys have all digits of the number; what RETURN answers for a sortable field is rounded.
        values = [row[b"sortkey"].decode().lstrip("#") for row in reply[b"results"]]
        fresh = [name for name in names if name not in tied]
        if fresh:
            yield fresh
        if len(names) < most:
            return
        if values[-1] != low:
            tied.clear()
        low = values[-1]
        tied.update(name for name, value in zip(names, values, strict=True) if value == low)
