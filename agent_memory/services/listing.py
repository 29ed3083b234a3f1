"""Lists of memories: the last created first, and of those created at the same moment in one order, whatever was done to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agent_memory.services.plans import Plan, Ranked, Ranking
from agent_memory.storage.connection import Pipe, Reader
from agent_memory.storage.memories import MemoryStore
from agent_memory.storage.queries import Listed, parse_listed


class Listing:
    """Puts a list together. The engine orders what shares a moment by when it was written last, so it is ordered by name here."""

    def __init__(self, reader: Reader, store: MemoryStore) -> None:
        self._read = reader
        self._store = store

    def queue(self, pipe: Pipe, plan: Plan) -> int:
        """Puts the list's commands on a pipeline; returns how many replies they give."""
        start, most = _span(plan)
        self._store.queue_newest(pipe, plan.clause, start, most)
        if plan.past is None:
            return 1
        self._store.queue_newest(pipe, plan.past, start, most, past=True)
        return 2

    async def ranking(self, plan: Plan, replies: Sequence[Any]) -> Ranking:
        """The memories of the request's page (with history: of all up to it). A second round trip when what shares a moment goes on
        beyond what was read."""
        request, answers = plan.request, [parse_listed(reply) for reply in replies]
        start, most = _span(plan)
        total = sum(answer.total for answer in answers)
        rows = sorted((row for answer in answers for row in answer.rows), key=_place)
        if not rows or not request.limit:
            return Ranking(total, [])
        # Both ends of what was read lie outside of the page: a moment that one of them shares with the page may be longer.
        first, last = request.offset - start, min(request.offset - start + request.limit, len(rows)) - 1
        cut = [answer.rows[-1].at for answer in answers if len(answer.rows) >= most]
        open_: set[float] = {rows[last].at} & set(cut) if last >= 0 else set()
        if start and len(rows) > first and rows[0].at == rows[first].at:
            open_.add(rows[0].at)
        if open_:
            before, groups = await self._moments(plan, sorted(open_, reverse=True))
            if start and rows[0].at in open_:
                start = before
            rows = sorted([*(row for row in rows if row.at not in open_), *groups], key=_place)
        begin = 0 if plan.past is not None else request.offset - start
        return Ranking(total, [Ranked(row.mid, None, 0.0) for row in rows[max(begin, 0) : request.offset - start + request.limit]])

    async def _moments(self, plan: Plan, moments: Sequence[float]) -> tuple[int, list[Listed]]:
        """How many memories come before the first of some moments, and all of these moments."""

        def build(pipe: Pipe) -> None:
            for clause, past in clauses:
                self._store.queue_newest(pipe, f"{clause} @c:[({moments[0]!r} +inf]", 0, 0, past=past)
                for moment in moments:
                    self._store.queue_newest(pipe, f"{clause} @c:[{moment!r} {moment!r}]", 0, -1, past=past)

        clauses = [(plan.clause, False), *([] if plan.past is None else [(plan.past, True)])]
        replies = [parse_listed(reply) for reply in await self._read(build)]
        size = 1 + len(moments)
        before = sum(reply.total for reply in replies[::size])
        return before, [row for place, reply in enumerate(replies) if place % size for row in reply.rows]


def _span(plan: Plan) -> tuple[int, int]:
    """What is read of each list: the page with one more at either end; with history, two lists up to the page's end."""
    request = plan.request
    start = 0 if plan.past is not None else max(request.offset - 1, 0)
    return start, request.offset - start + request.limit + 1


def _place(row: Listed) -> tuple[float, str]:
    return -row.at, row.mid
