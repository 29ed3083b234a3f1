"""Answer "What do you know about me?" and similar questions by listing durable memories first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agent_memory.features.memories.search.pages import PageReader
from agent_memory.features.memories.search.query import SearchQuery
from agent_memory.features.memories.search.ranking import Ranking
from agent_memory.features.memories.shown_memories import ShownMemory
from agent_memory.features.memories.store import MemoryStore
from agent_memory.features.recall.lines import line_date, no_longer_true_since
from agent_memory.features.recall.sections.memory_content import MemoriesContent
from agent_memory.foundation.core.prompt_sections import PromptAsk, SessionMessages
from agent_memory.foundation.llm.tokens import TokenCounter
from agent_memory.foundation.storage.connection import Pipe
from agent_memory.foundation.storage.search import filters
from agent_memory.foundation.storage.search.results import parse_listed
from agent_memory.foundation.storage.search.syntax import having
from agent_memory.foundation.text.languages.lasting import is_lasting, lasting_terms, name_terms, says_name

_NAME_SLOT = ".name"
# Memories to read per list, as a multiple of the prompt's places.
_ROOM = 2
# The first three lists do not overlap and include the other lists, so their totals add up.
_KINDS = 3
_TYPES = ("semantic", "procedural", "episodic")


@dataclass(frozen=True, slots=True)
class EverythingReads:
    """Lists memories for the query's users and namespaces, up to `most` tokens."""

    ask: PromptAsk
    query: SearchQuery
    store: MemoryStore
    pages: PageReader
    counter: TokenCounter
    most: int

    def queue_section(self, pipe: Pipe) -> int:
        """Queue reads for the memory lists. Return the number of replies."""
        current = self.query.clause
        statement_filter = filters.statements(current)
        lasting = [having(statement_filter, terms) for terms in (name_terms(), lasting_terms())]
        clauses = (filters.of_type(current, "semantic"), filters.further_facts(current), statement_filter, *lasting)
        for clause in clauses:
            self.store.queue_newest(pipe, clause, 0, _ROOM * self.query.request.limit)
        return len(clauses)

    async def load_section(self, replies: Sequence[Any], session: SessionMessages | None) -> MemoriesContent:
        """Return the memories in the replies, most durable first."""
        pages = [parse_listed(reply) for reply in replies]
        scored = [(0.0, mid) for mid in dict.fromkeys(row.mid for page in pages for row in page.rows)]
        ranking = Ranking(sum(page.total for page in pages[:_KINDS]), scored, listed=True)
        memories = await self.pages.read_ranked(self.ask.scope, self.query, ranking, scored) if scored else []
        memories.sort(key=_durability)
        return MemoriesContent(self.ask, self.query, ranking, memories, (), self.counter, self.most, None)


def _durability(memory: ShownMemory) -> tuple[bool, bool, int, bool, bool, bool, int, float]:
    kind = memory.memory_type
    rank = _TYPES.index(kind) if kind in _TYPES else len(_TYPES)
    ended = no_longer_true_since(memory) is not None
    names = (memory.values.get("slot") or "").endswith(_NAME_SLOT) or says_name(memory.text)
    lasts = names or is_lasting(memory.text)
    return (
        memory.is_message,
        not memory.values.get("pinned"),
        rank,
        ended,
        not names,
        not lasts,
        -memory.times_said,
        -line_date(memory).timestamp(),
    )
