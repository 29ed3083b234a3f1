"""Why a search did not return a memory: the same plan and the same ranking as the search, asked about one of them."""

from __future__ import annotations

from dataclasses import replace

from agent_memory.errors import Refused
from agent_memory.scope import Scope
from agent_memory.services.plans import Plan
from agent_memory.services.recall import RecallService
from agent_memory.services.search import SearchService, explanation
from agent_memory.services.shares import NOTHING_KNOWN
from agent_memory.storage import filters
from agent_memory.storage.connection import Pipe, Reader
from agent_memory.storage.memories import MemoryStore, parse_hits
from agent_memory_client.models import ExplainRequest, Explanation, HitExplanation, MemoryPromptRequest, SearchRequest

# How deep it looks for the rank of a memory that the search itself did not reach.
_DEEP = 5000


class ExplainService:
    """Answers why."""

    def __init__(self, search: SearchService, recall: RecallService, store: MemoryStore, reader: Reader) -> None:
        self._search = search
        self._recall = recall
        self._store = store
        self._read = reader

    async def answer(self, scope: Scope, body: ExplainRequest) -> Explanation:
        """What a request asks. Raises what the search or the prompt raises."""
        if body.prompt is not None:
            return await self.explain_prompt(scope, body.memory_id, body.prompt)
        return await self.explain(scope, body.memory_id, body.search or SearchRequest())

    async def explain_prompt(self, scope: Scope, memory_id: str, body: MemoryPromptRequest) -> Explanation:
        """Where the memory stands among those of the prompt, or what keeps it out. Raises Refused for a prompt that does not search."""
        answer, plan = await self._recall.assembled(scope, body, explain=True)
        if plan is None or answer.explanation is None:
            raise Refused("the prompt does not search long-term memory: give long_term_search", field="prompt.long_term_search")
        for memory in answer.memories:
            if memory.id == memory_id:
                why: HitExplanation | None = memory.values["explanation"]
                rank = None if why is None else why.rank
                return Explanation(memory_id=memory_id, returned=True, reason="returned", rank=rank, explanation=why)
        for cut in answer.explanation.cut:
            if cut.memory_id == memory_id:
                return Explanation(returned=False, **cut.model_dump())
        found = await self.explain(scope, memory_id, plan.request, paged=False)
        # Within the search's limit, and pushed out by what was said a moment ago.
        return found.model_copy(update={"returned": False, "reason": "beyond_limit"}) if found.returned else found

    async def explain(self, scope: Scope, memory_id: str, request: SearchRequest, *, paged: bool = True) -> Explanation:
        """Where the memory stands in the answer to the request, or what keeps it out; a prompt's search is not `paged`. Raises what the
        search raises."""
        mid = self._store.mid(scope, memory_id)
        record = (await self._store.get(scope, [memory_id]))[0]
        if record is None:
            return Explanation(memory_id=memory_id, returned=False, reason="not_found")
        if record.quarantine is not None and not request.quarantined:
            return Explanation(memory_id=memory_id, returned=False, reason="quarantined")
        excluding = await self._excluding(scope, request, mid)
        if excluding:
            return Explanation(memory_id=memory_id, returned=False, reason="filtered", filters=excluding)
        plan = await self._search.prepare(scope, request.model_copy(update={"explain": True}), paged=paged)
        plan, replies = await self._search.run(scope, plan)
        found = await self._search.ranking(scope, plan, replies)
        if request.distinct and plan.mode is not None:
            found, by = await self._search.without_repeats(scope, plan, found)
            if mid in by:
                return Explanation(memory_id=memory_id, returned=False, reason="collapsed", by=by[mid])
        page = self._search.page(plan, found)
        place = next((rank for rank, hit in enumerate(found.ranked, start=1) if hit.mid == mid), None)
        if plan.mode is None:
            place = None if place is None else place + request.offset
        if place is not None:
            hit = next(hit for hit in found.ranked if hit.mid == mid)
            shown = any(hit.mid == mid for hit in page)
            reason = "returned" if shown else "beyond_limit"
            return Explanation(memory_id=memory_id, returned=shown, reason=reason, rank=place, explanation=explanation(hit, place))
        if any(hit.mid == mid for hit in found.dropped):
            dropped = next(hit for hit in found.dropped if hit.mid == mid)
            rank = len(found.ranked) + 1
            return Explanation(memory_id=memory_id, returned=False, reason="below_threshold", explanation=explanation(dropped, rank))
        return await self._deeper(scope, plan, memory_id, mid)

    async def _deeper(self, scope: Scope, plan: Plan, memory_id: str, mid: str) -> Explanation:
        """The same search, but as deep as it goes."""
        request = plan.request
        threshold = request.distance_threshold
        if threshold is not None:
            request = request.model_copy(update={"distance_threshold": None})
        wide = request.model_copy(update={"offset": 0, "limit": 100})
        # As it was made: it must not be made anew, for its own depth.
        deep = replace(plan, request=wide, depth=_DEEP, known=NOTHING_KNOWN, around=None)
        found = await self._search.ranking(scope, *await self._search.run(scope, deep))
        ranked = found.ranked
        rank = next((place for place, hit in enumerate(ranked, start=1) if hit.mid == mid), None)
        if rank is None:
            low = any(hit.mid == mid for hit in found.dropped)
            return Explanation(memory_id=memory_id, returned=False, reason="below_threshold" if low else "not_ranked")
        hit = ranked[rank - 1]
        reason = "below_threshold" if threshold is not None and hit.distance > threshold else "beyond_limit"
        return Explanation(memory_id=memory_id, returned=False, reason=reason, rank=rank, explanation=explanation(hit, rank))

    async def _excluding(self, scope: Scope, request: SearchRequest, mid: str) -> list[str]:
        """The filters of the request that the memory does not pass, each looked at by itself."""
        names = [name for name in filters.FILTERS if getattr(request, name) is not None]

        def build(pipe: Pipe) -> None:
            self._store.queue_matches(pipe, filters.where(scope), mid)
            for name in names:
                alone = SearchRequest().model_copy(update={name: getattr(request, name)})
                self._store.queue_matches(pipe, filters.where(scope, alone), mid)

        visible, *passed = (parse_hits(reply).total for reply in await self._read(build))
        if not visible:
            return ["scope"]
        return [name for name, count in zip(names, passed, strict=True) if count == 0]
