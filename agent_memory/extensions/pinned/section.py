"""Show pinned memories in the prompt. The text stays byte-identical until one changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from agent_memory.features.memories.records import decode_memory
from agent_memory.foundation.core.prompt_sections import FittedText, PromptAsk, SectionKind, SessionMessages, fit_lines
from agent_memory.foundation.llm.tokens import TokenCounter
from agent_memory.foundation.storage.connection import Pipe
from agent_memory.foundation.storage.keyspace import Keys
from agent_memory.foundation.storage.search import filters
from agent_memory.foundation.storage.search.indexes import memory_index_name
from agent_memory.foundation.storage.search.queries import queue_search, record_query
from agent_memory.foundation.storage.search.results import parse_hits
from agent_memory.foundation.storage.search.syntax import all_of
from agent_memory.foundation.text.prompt_marks import DATA_NOTE, part_heading

_HEADING = part_heading("pinned memories")
_MOST = 128
"""More memories would exceed the token limit."""


@dataclass(frozen=True, slots=True)
class PinnedReads:
    index: str
    clause: str
    most: int
    count: Callable[[str], int]
    lines: Sequence[str] = ()
    omitted_count: int = 0

    def queue_section(self, pipe: Pipe) -> int:
        queue_search(pipe, self.index, record_query(self.clause, _MOST))
        return 1

    async def load_section(self, replies: Sequence[Any], session: SessionMessages | None) -> PinnedReads:
        """Format one line per memory, oldest first."""
        hits = parse_hits(replies[0])
        records = [decode_memory(raw) for hit in hits.hits if (raw := hit.fields.get(b"j")) is not None]
        records.sort(key=lambda record: (record.created_at, record.id))
        lines = [f"- {' '.join(record.text.split())}" for record in records]
        return replace(self, lines=lines, omitted_count=max(hits.total - len(lines), 0))

    def fit_section(self, tokens: int | None) -> FittedText:
        """Keep the lines that fit within both token limits."""
        left = self.most if tokens is None else min(self.most, tokens)
        lines, _ = fit_lines(self.lines, left - self.count(_HEADING + DATA_NOTE), self.count)
        omitted = self.omitted_count + len(self.lines) - len(lines)
        notices = [f"{omitted} pinned memories have no room: they were left out"] if omitted else []
        return FittedText(_HEADING + "\n".join(lines) + DATA_NOTE if lines else "", self.count, notices)


class PinnedSection:
    kind = SectionKind.ALWAYS

    def __init__(self, keys: Keys, counter: TokenCounter) -> None:
        self._index = memory_index_name(keys)
        self._counter = counter

    async def open_section(self, ask: PromptAsk) -> PinnedReads | None:
        options, reader = ask.body.pinned, ask.reader
        if options is None or reader.user_id is None or not ask.scope.reaches(reader.namespace, reader.user_id):
            return None
        owned = [filters.is_value("u", reader.user_id)]
        owned += [] if reader.namespace is None else [filters.is_value("ns", reader.namespace)]
        in_time = filters.in_time(None, None, history=False, now=datetime.now(UTC))[0]
        clause = all_of(filters.where(ask.scope), *owned, filters.pinned(), in_time)
        return PinnedReads(self._index, clause, options.tokens, self._counter.count)
