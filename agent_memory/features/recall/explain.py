"""Explain why a prompt or a search did not return a memory."""

from __future__ import annotations

from agent_memory.features.memories.search.explain import SearchExplainer
from agent_memory.features.recall.service import RecallService
from agent_memory.foundation.core.errors import UnsupportedRequest
from agent_memory.foundation.core.scope import Scope
from agent_memory_client.models import ExplainRequest, Explanation, HitExplanation, SearchRequest


class ExplainService:
    def __init__(self, searches: SearchExplainer, recall: RecallService) -> None:
        self._searches = searches
        self._recall = recall

    async def explain_memory_of(self, scope: Scope, body: ExplainRequest) -> Explanation:
        """Return the memory's rank in the prompt or search, or the reason why the memory is left out.

        Raises UnsupportedRequest if the prompt does not search.
        """
        memory_id = body.memory_id
        if body.prompt is None:
            return await self._searches.explain_search(scope, memory_id, body.search or SearchRequest())
        prompt = await self._recall.build_prompt(scope, body.prompt, explain=True)
        if prompt.search is None or prompt.explanation is None:
            raise UnsupportedRequest("the prompt does not search long-term memory: give long_term_search", field="prompt.long_term_search")
        for memory in prompt.memories:
            if memory.id == memory_id:
                why: HitExplanation | None = memory.values["explanation"]
                rank = None if why is None else why.rank
                return Explanation(memory_id=memory_id, returned=True, reason="returned", rank=rank, explanation=why)
        for cut in prompt.explanation.cut:
            if cut.memory_id == memory_id:
                return Explanation(returned=False, **cut.model_dump())
        explained = await self._searches.explain_search(scope, memory_id, prompt.search, paged=False)
        # The search finds the memory, but a message that is not promoted yet took its place in the prompt.
        return explained.model_copy(update={"returned": False, "reason": "beyond_limit"}) if explained.returned else explained
