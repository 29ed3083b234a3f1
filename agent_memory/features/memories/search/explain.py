"""Explain why a search did not return a memory, using the search's own query and ranking."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from agent_memory.features.memories.search.pages import page_of
from agent_memory.features.memories.search.service import SearchService
from agent_memory.features.memories.store import MemoryStore, parse_hits
from agent_memory.foundation.core.scope import Scope
from agent_memory.foundation.storage.connection import Pipe, PipelineReader
from agent_memory.foundation.storage.search import filters
from agent_memory_client.models import Explanation, SearchRequest

_DEEP = 5000


class SearchExplainer:
    def __init__(self, search: SearchService, store: MemoryStore, reader: PipelineReader) -> None:
        self._search = search
        self._store = store
        self._read = reader

    async def explain_search(self, scope: Scope, memory_id: str, request: SearchRequest, *, paged: bool = True) -> Explanation:
        """Return the memory's rank, or the reason why it is missing. A prompt's search is not `paged`."""
        mid = self._store.mid(scope, memory_id)
        missing = partial(Explanation, memory_id=memory_id, returned=False)
        record = (await self._store.get(scope, [memory_id]))[0]
        if record is None:
            return missing(reason="not_found")
        if record.quarantine is not None and not request.quarantined:
            return missing(reason="quarantined")
        excluding = await self._excluding(scope, request, mid)
        if excluding:
            return missing(reason="filtered", filters=excluding)
        query = await self._search.prepare_query(scope, request.model_copy(update={"explain": True}), paged=paged)
        ranking = await self._search.rank_query(scope, query)
        if request.distinct and query.mode is not None:
            ranking, repeats = await self._search.without_duplicates(scope, query, ranking)
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
        ranking = await self._search.rank_query(scope, replace(query, request=wide, depth=_DEEP))
        rank = ranking.rank_of(mid)
        if rank is None:
            low = any(name == mid for _, name in ranking.below_threshold)
            return missing(reason="below_threshold" if low else "not_ranked")
        scored = ranking.scored[rank - 1]
        too_far = threshold is not None and ranking.distance_of(scored) > threshold
        return missing(reason="below_threshold" if too_far else "beyond_limit", rank=rank, explanation=ranking.explain(scored, rank))

    async def _excluding(self, scope: Scope, request: SearchRequest, mid: str) -> list[str]:
        """Return the filters that exclude the memory, each tested separately."""
        names = [name for name in filters.FILTERS if getattr(request, name) is not None]

        def build(pipe: Pipe) -> None:
            self._store.queue_matches(pipe, filters.where(scope), mid)
            for name in names:
                alone = SearchRequest().model_copy(update={name: getattr(request, name), "timezone": request.timezone})
                self._store.queue_matches(pipe, filters.where(scope, alone), mid)

        visible, *passed = (parse_hits(reply).total for reply in await self._read(build))
        if not visible:
            return ["scope"]
        return [name for name, count in zip(names, passed, strict=True) if count == 0]
