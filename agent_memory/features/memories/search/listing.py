"""List memories by creation time, newest first. Equal times are sorted by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from redisvl.query.filter import Num

from agent_memory.features.memories.search.query import SearchQuery
from agent_memory.features.memories.search.ranking import Ranking
from agent_memory.features.memories.store import MemoryStore
from agent_memory.foundation.storage.connection import Pipe, PipelineReader
from agent_memory.foundation.storage.search.results import ListEntry, parse_listed
from agent_memory.foundation.storage.search.syntax import all_of


def queue_list(pipe: Pipe, store: MemoryStore, query: SearchQuery) -> int:
    """Queue the commands for a listing, and return the number of replies."""
    start, most = _span(query)
    for clause, past in query.clauses:
        store.queue_newest(pipe, clause, start, most, past=past)
    return len(query.clauses)


async def rank_list(read: PipelineReader, store: MemoryStore, query: SearchQuery, replies: Sequence[Any]) -> Ranking:
    """Return the memories on the page. With history, start at the top of the ranking."""
    request, answers = query.request, [parse_listed(reply) for reply in replies]
    start, most = _span(query)
    total = sum(answer.total for answer in answers)
    rows = sorted((row for answer in answers for row in answer.rows), key=_newest_first)
    if not rows or not request.limit:
        return Ranking(total, [], listed=True)
    # More memories with the same time as the page's first or last one may follow the rows that were read.
    first, last = request.offset - start, min(request.offset - start + request.limit, len(rows)) - 1
    cut = [answer.rows[-1].at for answer in answers if len(answer.rows) >= most]
    open_: set[float] = {rows[last].at} & set(cut) if last >= 0 else set()
    if start and len(rows) > first and rows[0].at == rows[first].at:
        open_.add(rows[0].at)
    if open_:
        before, groups = await _moments(read, store, query, sorted(open_, reverse=True))
        if start and rows[0].at in open_:
            start = before
        rows = sorted([*(row for row in rows if row.at not in open_), *groups], key=_newest_first)
    begin = 0 if query.history is not None else request.offset - start
    page = rows[max(begin, 0) : request.offset - start + request.limit]
    return Ranking(total, [(0.0, row.mid) for row in page], listed=True)


async def _moments(read: PipelineReader, store: MemoryStore, query: SearchQuery, moments: Sequence[float]) -> tuple[int, list[ListEntry]]:
    """Return the number of newer memories, and all memories created at the given times."""

    def build(pipe: Pipe) -> None:
        for clause, past in query.clauses:
            store.queue_newest(pipe, all_of(clause, Num("c") > moments[0]), 0, 0, past=past)
            for moment in moments:
                store.queue_newest(pipe, all_of(clause, Num("c") == moment), 0, -1, past=past)

    replies = [parse_listed(reply) for reply in await read(build)]
    size = 1 + len(moments)
    before = sum(reply.total for reply in replies[::size])
    return before, [row for index, reply in enumerate(replies) if index % size for row in reply.rows]


def _span(query: SearchQuery) -> tuple[int, int]:
    """Return an offset and length that cover the page and one memory on each side.

    With history, the offset is 0.
    """
    request = query.request
    start = 0 if query.history is not None else max(request.offset - 1, 0)
    return start, request.offset - start + request.limit + 1


def _newest_first(row: ListEntry) -> tuple[float, str]:
    return -row.at, row.mid
