"""Read the memories on one page of a ranking, with scores and passages."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agent_memory.features.memories.search.query import SearchQuery
from agent_memory.features.memories.search.ranking import Ranking, Scored, names_time_alone
from agent_memory.features.memories.search.recency import Age, may_be_among, newer_first, now_of
from agent_memory.features.memories.shown_memories import ROW_FIELDS, MemoryRow, ShownMemory, ShownMemoryReader
from agent_memory.features.memories.store import MemoryStore, parse_hits
from agent_memory.foundation.core.scope import Scope
from agent_memory.foundation.core.settings import SearchSettings
from agent_memory.foundation.llm.threads import run_in_thread
from agent_memory.foundation.storage.connection import Pipe, PipelineReader
from agent_memory.foundation.storage.search import filters, syntax
from agent_memory.foundation.text.terms import phrases, query_terms
from agent_memory_client.models import ANSWER, AnswerExplanation, Cut, MemoryRecordResultsResponse

# If at most this many memories do not fit on the page, reading whole records is fastest.
_FEW_MORE = 10
# A prompt reads up to this many facts below the threshold in the same round trip, at 10 µs each.
_FURTHER_FACTS = 8
_FURTHER_MESSAGES = 8
# A message's neighbors are also indexed under its words, so several hits may stem from one message.
_MOST_LATER_HITS = 12


@dataclass(slots=True)
class Page:
    memories: Sequence[ShownMemory]
    total: int
    next_offset: int | None
    notices: Sequence[str]
    explanation: AnswerExplanation | None

    def page_values(self) -> dict[str, Any]:
        return {
            "memories": [card.values for card in self.memories],
            "total": self.total,
            "next_offset": self.next_offset,
            "notices": self.notices or None,
            "explanation": self.explanation,
        }

    def model(self) -> MemoryRecordResultsResponse:
        return MemoryRecordResultsResponse.model_validate(self.page_values(), context=ANSWER)


class PageReader:
    def __init__(self, reader: PipelineReader, store: MemoryStore, cards: ShownMemoryReader) -> None:
        self._read = reader
        self._store = store
        self._cards = cards

    async def read_page(
        self, scope: Scope, query: SearchQuery, ranking: Ranking, without: Collection[str] = ()
    ) -> tuple[list[ShownMemory], bool]:
        """Return the requested page without deleted memories, and whether the ranking could fill it."""
        scored = [each for each in ranking.scored if each[1] not in without] if without else ranking.scored
        if query.age is Age.BREAKS_TIES_ON_PAGE:
            return (await self._read_newer_first(scope, query, ranking, scored))[0], len(scored) >= page_of(query).stop
        page = scored[page_of(query)]
        return await self.read_ranked(scope, query, ranking, page), len(page) == query.request.limit

    async def read_kinds(
        self, scope: Scope, query: SearchQuery, ranking: Ranking, without: Collection[str] = ()
    ) -> tuple[list[ShownMemory], list[ShownMemory]]:
        """Return the best memories for a prompt, and additional candidates.

        Facts and messages each get half of the limit, plus any places that the other kind leaves
        unused. Additional candidates are facts that a returned message may support, and the next
        messages.
        """
        scored = [each for each in ranking.scored if each[1] not in without] if without else ranking.scored
        apart = bool(ranking.facts) and not query.request.offset
        facts = [each for each in scored if each[1] in ranking.facts] if apart else []
        rest = [each for each in scored if each[1] not in ranking.facts] if apart else scored
        # Facts below the threshold matter only together with messages that support them.
        further = [each for each in ranking.below_threshold if each[1] in ranking.facts][:_FURTHER_FACTS] if apart and rest else []
        limit = query.request.limit
        places = max((limit + 1) // 2, limit - len(rest))
        kinds = [(facts, min(places, len(facts))), (rest, limit - min(places, len(facts)))]
        further = [*further, *_further_messages(query, ranking, scored, rest[kinds[1][1] :], without)]
        if not facts and not further:
            return (await self.read_page(scope, query, ranking, without))[0], []
        if not facts and len(scored) >= limit and query.age is Age.BREAKS_TIES_ON_PAGE:
            return await self._read_newer_first(scope, query, ranking, scored, further)
        if query.age is not Age.BREAKS_TIES_ON_PAGE:
            page = _by_score([each for kind, count in kinds for each in kind[:count]])
            names = frozenset(name for _, name in further)
            memories = await self.read_ranked(scope, query, ranking, [*page, *further])
            return [memory for memory in memories if memory.mid not in names], [memory for memory in memories if memory.mid in names]
        first = [may_be_among(kind, count)[: count + _FEW_MORE] if count else () for kind, count in kinds]
        rows = await self._cards.load_rows([name for kind in (*first, further) for _, name in kind])
        by_name, now = {row.name: row for row in rows}, now_of(query.request)
        chosen: list[Scored] = []
        for kind, (_, count) in zip(first, kinds, strict=True):
            existing = [each for each in kind if by_name[each[1]].fields[0] is not None]
            chosen += newer_first(existing, [by_name[name].last_said for _, name in existing], now)[:count]
        page = _by_score(chosen)
        further = [each for each in further if each not in page]
        return (
            await self._with_places(scope, query, ranking, page, [by_name[name] for _, name in page]),
            await self._with_places(scope, query, ranking, further, [by_name[name] for _, name in further]),
        )

    async def read_ranked(self, scope: Scope, query: SearchQuery, ranking: Ranking, scored: Sequence[Scored]) -> list[ShownMemory]:
        """Return the ranked memories that still exist."""
        rows = await self._cards.load_rows([name for _, name in scored])
        return await self._with_places(scope, query, ranking, scored, rows)

    async def read_later_statements(
        self, scope: Scope, query: SearchQuery, mentions: Sequence[tuple[str, datetime]]
    ) -> list[list[ShownMemory]]:
        """For each (text, time), return users' messages since then that contain the phrase.

        Include neighboring messages.
        """

        def build(pipe: Pipe) -> None:
            for text, since in mentions:
                clause = filters.made_since(filters.statements(query.clause), since)
                phrase = syntax.quoting(phrases(f'"{text}"'), (), every=True)
                self._store.queue_words(pipe, clause, query_terms(text), _MOST_LATER_HITS, fields=ROW_FIELDS, phrase=phrase)

        statements_per_mention = [self._cards.memories_of_hits(scope, parse_hits(reply)) for reply in await self._read(build)]
        for memories in statements_per_mention:
            for memory in memories:
                memory.set_score(1.0, None, query.score_type)
        return statements_per_mention

    async def _read_newer_first(
        self, scope: Scope, query: SearchQuery, ranking: Ranking, scored: Sequence[Scored], further: Sequence[Scored] = ()
    ) -> tuple[list[ShownMemory], list[ShownMemory]]:
        """Read a page with ties broken by age, and any `further` memories that are not on it."""
        page, now = page_of(query), now_of(query.request)
        first = may_be_among(scored, page.stop)
        many = len(first) > query.request.limit + _FEW_MORE
        if many:
            times = await self._read(lambda pipe: self._store.queue_times(pipe, [name for _, name in first]))
            first = newer_first(first, [float(last_said or created or 0) for created, last_said in times], now)[page]
        rows = await self._cards.load_rows(list(dict.fromkeys(name for _, name in (*first, *further))))
        by_name = {row.name: row for row in rows}
        if not many:
            existing = [each for each in first if by_name[each[1]].fields[0] is not None]
            first = newer_first(existing, [by_name[name].last_said for _, name in existing], now)[page]
        further = [each for each in further if each not in first]
        return (
            await self._with_places(scope, query, ranking, first, [by_name[name] for _, name in first]),
            await self._with_places(scope, query, ranking, further, [by_name[name] for _, name in further]),
        )

    async def _with_places(
        self, scope: Scope, query: SearchQuery, ranking: Ranking, scored: Sequence[Scored], rows: Sequence[MemoryRow]
    ) -> list[ShownMemory]:
        kind, explains, first = query.score_type, query.request.explain, query.request.offset + 1

        def place() -> list[ShownMemory]:
            cards: list[ShownMemory] = []
            for rank, (each, card) in enumerate(zip(scored, self._cards.shown_memories(scope, rows), strict=True), start=first):
                if card is not None:
                    why = ranking.explain(each, rank) if explains else None
                    card.set_score(max(ranking.distance_of(each), 0.0), None if ranking.listed else each[0], kind, why)
                    if ranking.relevance is not None:
                        card.values["relevance"] = round(ranking.relevance(each[1]), 3)
                    if (number := ranking.passages.get(each[1])) is not None:
                        card.set_passage(number)
                    cards.append(card)
            return cards

        return await run_in_thread(place, sum([len(value) for row in rows for value in row.fields if value is not None]))


def _by_score(scored: Sequence[Scored]) -> list[Scored]:
    return sorted(scored, key=lambda each: -each[0])


def _further_messages(
    query: SearchQuery, ranking: Ranking, scored: Sequence[Scored], beyond: Sequence[Scored], without: Collection[str]
) -> Sequence[Scored]:
    """Return the messages to read after a prompt's page, starting with those beyond the limit."""
    left = query.request.limit - len(scored)
    beside = bool(scored) and query.span is None
    if not (beside or (left > 0 and names_time_alone(query))) or not query.facts_apart or query.request.offset:
        return []
    below = [each for each in ranking.below_threshold if each[1] not in ranking.facts and each[1] not in without]
    most = left if left > 0 else max(SearchSettings.prompt_memories - query.request.limit, 0)
    return [*beyond, *below][: min(most, _FURTHER_MESSAGES)]


def page_of(query: SearchQuery) -> slice:
    """Return the slice of a ranking for the requested page."""
    start = 0 if query.mode is None and query.history is None else query.request.offset
    return slice(start, start + query.request.limit)


def explain_answer(query: SearchQuery, ranking: Ranking, cut: list[Cut]) -> AnswerExplanation:
    meaning, span = query.meaning, query.span
    return AnswerExplanation(
        mode=query.score_type,
        query=None if meaning is None else meaning.text,
        left_out=[] if meaning is None else list(meaning.omitted_names),
        time_start=None if span is None else span.start,
        time_end=None if span is None else span.end,
        ranked=len(ranking.scored),
        below_threshold=len(ranking.below_threshold),
        cut=cut,
    )
