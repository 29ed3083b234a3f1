"""Search memories: request → query → candidates → ranking → page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from agent_memory.features.memories.search.candidates import Candidates, parse_candidates, queue_candidates, times_of
from agent_memory.features.memories.search.listing import queue_list, rank_list
from agent_memory.features.memories.search.near_duplicates import DuplicateFilter
from agent_memory.features.memories.search.pages import Page, PageReader, explain_answer, page_of
from agent_memory.features.memories.search.query import QueryBuilder, SearchQuery, mode_of, span_of
from agent_memory.features.memories.search.ranking import Ranking, Scored, rank_candidates
from agent_memory.features.memories.search.recency import Age, novelties, now_of, recency, weigh_age
from agent_memory.features.memories.shown_memories import ShownMemory, ShownMemoryReader
from agent_memory.features.memories.store import MemoryStore, parse_hits
from agent_memory.features.memories.usage.log import UsageLog
from agent_memory.foundation.core.errors import ModelAnswerInvalid, ModelUnavailable
from agent_memory.foundation.core.logs import get_logger
from agent_memory.foundation.core.scope import Scope
from agent_memory.foundation.core.settings import Settings
from agent_memory.foundation.llm.base import Reranker
from agent_memory.foundation.storage.connection import Pipe, PipelineReader
from agent_memory.foundation.storage.search import filters
from agent_memory_client.models import Cut, Explanation, MemoryRecordResultsResponse, SearchModeEnum, SearchRequest

# The depth of the search for duplicates. Each page must check all ranks before it.
_MOST_DISTINCT = 400
# The depth of the lists in which to look for a memory that a search did not return.
_DEEP = 5000


log = get_logger(__name__)


class SearchService:
    def __init__(
        self,
        settings: Settings,
        reader: PipelineReader,
        store: MemoryStore,
        cards: ShownMemoryReader,
        queries: QueryBuilder,
        reranker: Reranker | None,
        pages: PageReader,
        usage: UsageLog,
    ) -> None:
        self._settings = settings.search
        self._read = reader
        self._store = store
        self._cards = cards
        self.queries = queries
        self._reranker = reranker
        self._pages = pages
        self._usage = usage

    async def search(self, scope: Scope, body: SearchRequest, *, optimize_query: bool = False) -> MemoryRecordResultsResponse:
        """Run `search_page` and return the model for REST responses."""
        return (await self.search_page(scope, body, optimize_query=optimize_query)).model()

    async def search_page(self, scope: Scope, body: SearchRequest, *, optimize_query: bool = False, again: bool = False) -> Page:
        """Return a page of memories. Raises UnsupportedRequest, BadInput or RedisUnavailable.

        With `optimize_query`, a language model rewrites the query first. `again` is True for the
        second attempt, after all memories on the page were deleted.
        """
        query = await self.queries.build_query(scope, body, optimize_query=optimize_query)
        ranking = await self.rank_query(scope, query)
        if not ranking.scored and query.rewritten and body.distance_threshold is not None:
            # Like the archived server: if nothing matches the model's words, use the caller's words.
            query = await self.queries.build_query(scope, body)
            notice = "optimize_query: nothing is near enough to the rewritten query; searched for the query as it is"
            query = replace(query, notices=[notice, *query.notices])
            ranking = await self.rank_query(scope, query)
        cut: list[Cut] = []
        if body.distinct and query.mode is not None:
            whole = ranking
            ranking, repeats = await self.without_duplicates(scope, query, whole)
            if body.explain:
                collapsed = [scored for scored in whole.scored if scored[1] in repeats]
                cards = await self._pages.read_ranked(scope, query, whole, collapsed)
                cut = [Cut(memory_id=card.id, reason="collapsed", by=repeats[self._store.mid(scope, card.id)]) for card in cards]
        memories, full = await self._pages.read_page(scope, query, ranking)
        if not memories and ranking.scored[page_of(query)] and not again:
            # All were deleted after the ranking: newer ones may have replaced them, such as a file's new version.
            return await self.search_page(scope, body, optimize_query=optimize_query, again=True)
        after = body.offset + body.limit
        self.count_reading(query, memories)
        notices = [*query.notices, *ranking.notices]
        why = explain_answer(query, ranking, cut) if body.explain else None
        return Page(memories, ranking.total, after if full and after < ranking.total else None, notices, why)

    def empty_query(self, scope: Scope, request: SearchRequest) -> SearchQuery:
        """Return a query that finds nothing. Raises BadInput in the same cases as a real query."""
        filters.where(scope, request)
        span_of(request, "")
        return SearchQuery(request, "", None, 0, mode_of(request))

    async def rank_query(self, scope: Scope, query: SearchQuery) -> Ranking:
        """Read a query's candidates in a separate round trip and rank them."""
        replies = [] if query.empty else await self._read(lambda pipe: self.queue_query(pipe, query))
        return await self.rank_replies(scope, query, replies)

    def queue_query(self, pipe: Pipe, query: SearchQuery) -> int:
        """Queue a query's commands. Return the number of replies for `rank_replies`."""
        return queue_list(pipe, self._store, query) if query.mode is None else queue_candidates(pipe, self._store, query)

    async def rank_replies(self, scope: Scope, query: SearchQuery, replies: Sequence[Any]) -> Ranking:
        """Return the final ranking from the replies to a query's commands."""
        if query.mode is None:
            return await rank_list(self._read, self._store, query, replies)
        candidates = parse_candidates(query, replies)
        ranking = rank_candidates(query, candidates, self._settings.min_similarity)
        if query.age in (Age.WEIGHED, Age.BREAKS_TIES) and ranking.scored:
            ranking = await self._order_by_age(query, candidates, ranking)
        return await self._rerank(scope, query, ranking)

    async def _order_by_age(self, query: SearchQuery, candidates: Candidates, ranking: Ranking) -> Ranking:
        weights, now = query.weights, now_of(query.request)
        names = [name for _, name in ranking.scored]
        stated_times = times_of(candidates, b"c") | times_of(candidates, b"ls")
        ages = [now - stated_times.get(name, 0.0) for name in names]
        if weights.freshness:
            accessed, read = times_of(candidates, b"la"), await self._store.last_readings(names)
            last = [max(accessed.get(name, 0.0) or stated_times.get(name, 0.0), read.get(name, 0.0)) for name in names]
            recencies = [recency(now - moment, age, weights) for moment, age in zip(last, ages, strict=True)]
        else:
            recencies = novelties(ages, weights)
        if query.request.server_side_recency and query.mode is SearchModeEnum.SEMANTIC:
            # The archived server derives similarity from distance in two ways.
            similarities = [1.0 - ranking.distance_of(scored) / 2 for scored in ranking.scored]
        else:
            similarities = [score for score, _ in ranking.scored]
        ordered = weigh_age(ranking.scored, similarities, recencies, weights)
        return replace(ranking, scored=ordered, recencies=dict(zip(names, recencies, strict=True)))

    async def without_duplicates(self, scope: Scope, query: SearchQuery, ranking: Ranking) -> tuple[Ranking, dict[str, str]]:
        """Return the ranking without duplicates, and map duplicates to the better memory's id."""
        first, distinct, repeats = ranking.scored[:_MOST_DISTINCT], DuplicateFilter(), dict[str, str]()
        rest: list[Scored] = []
        for scored, card in zip(first, await self._cards(scope, [name for _, name in first]), strict=True):
            by = None if card is None else distinct.add_memory(card)
            if by is None:
                rest.append(scored)
            else:
                repeats[scored[1]] = by
        rest += ranking.scored[_MOST_DISTINCT:]
        return replace(ranking, total=ranking.total - len(repeats), scored=rest), repeats

    def count_reading(self, query: SearchQuery, memories: Sequence[ShownMemory]) -> None:
        """Count shown memories as read, except in listings or with `recency_boost=False`."""
        if query.mode is not None and query.request.recency_boost is not False:
            self._usage.note_readings((memory.mid, memory.values["access_count"]) for memory in memories if memory.mid)

    async def _rerank(self, scope: Scope, query: SearchQuery, ranking: Ranking) -> Ranking:
        """Rerank the top of the ranking. If the model fails, keep the order."""
        most, text = self._settings.rerank_candidates, query.request.text
        if self._reranker is None or not text or query.request.offset >= most or not ranking.scored:
            return ranking
        names = [name for _, name in ranking.scored[:most]]
        records = await self._store.fetch_records(scope, names)
        texts = {name: record.text for name, record in zip(names, records, strict=True) if record is not None}
        try:
            scores = await self._reranker.rerank(text, list(texts.values()), timeout=self._settings.rerank_seconds)
        except (ModelUnavailable, ModelAnswerInvalid) as error:
            log.warning("search not reranked", tenant=scope.tenant, error=error)
            return replace(ranking, notices=["the reranking model gave no answer in time: ordered without it"])
        reranked = dict(zip(texts, scores, strict=True))
        first = sorted([scored for scored in ranking.scored[:most] if scored[1] in reranked], key=lambda scored: -reranked[scored[1]])
        return replace(ranking, scored=[*first, *ranking.scored[most:]], reranked=reranked)

    async def explain_search(self, scope: Scope, memory_id: str, request: SearchRequest, *, paged: bool = True) -> Explanation:
        """Return the memory's rank, or why it is missing. For prompts, pass `paged=False`."""
        mid = self._store.mid(scope, memory_id)
        missing = partial(Explanation, memory_id=memory_id, returned=False)
        record = (await self._store.get(scope, [memory_id]))[0]
        if record is None:
            return missing(reason="not_found")
        if record.id != memory_id:
            return missing(reason="not_current", by=record.id)
        if record.quarantine is not None and not request.quarantined:
            return missing(reason="quarantined")
        current, excluding = await self._excluding(scope, request, mid)
        if not current:
            return missing(reason="not_current", by=record.superseded_by)
        if excluding:
            return missing(reason="filtered", filters=excluding)
        query = await self.queries.build_query(scope, request.model_copy(update={"explain": True}), paged=paged)
        ranking = await self.rank_query(scope, query)
        if request.distinct and query.mode is not None:
            ranking, repeats = await self.without_duplicates(scope, query, ranking)
            if mid in repeats:
                return missing(reason="collapsed", by=repeats[mid])
        rank = ranking.rank_of(mid)
        if rank is not None:
            returned = any(name == mid for _, name in ranking.scored[page_of(query)])
            # A listing's ranking contains only the page.
            place = rank + request.offset if query.mode is None else rank
            why = ranking.explain(ranking.scored[rank - 1], place)
            reason = "returned" if returned else "beyond_limit"
            return Explanation(memory_id=memory_id, returned=returned, reason=reason, rank=place, explanation=why)
        below = next((scored for scored in ranking.below_threshold if scored[1] == mid), None)
        if below is not None:
            return missing(reason="below_threshold", explanation=ranking.explain(below, len(ranking.scored) + 1))
        # Search deeper, without the threshold.
        threshold = query.request.distance_threshold
        wide = query.request.model_copy(update={"distance_threshold": None, "offset": 0, "limit": 100})
        ranking = await self.rank_query(scope, replace(query, request=wide, depth=_DEEP))
        rank = ranking.rank_of(mid)
        if rank is None:
            low = any(name == mid for _, name in ranking.below_threshold)
            return missing(reason="below_threshold" if low else "not_ranked")
        scored = ranking.scored[rank - 1]
        too_far = threshold is not None and ranking.distance_of(scored) > threshold
        return missing(reason="below_threshold" if too_far else "beyond_limit", rank=rank, explanation=ranking.explain(scored, rank))

    async def _excluding(self, scope: Scope, request: SearchRequest, mid: str) -> tuple[bool, list[str]]:
        """Return whether the memory is current, and the filters that exclude it."""
        names = [name for name in filters.FILTERS if getattr(request, name) is not None]

        def build(pipe: Pipe) -> None:
            self._store.queue_matches(pipe, filters.clauses(scope, request, filters.where(scope))[0], mid)
            for name in names:
                alone = SearchRequest().model_copy(update={name: getattr(request, name), "timezone": request.timezone})
                self._store.queue_matches(pipe, filters.where(scope, alone), mid)

        visible, *passed = (parse_hits(reply).total for reply in await self._read(build))
        return bool(visible), [name for name, count in zip(names, passed, strict=True) if count == 0]
