"""Reorder a ranking by a reranking model, if configured."""

from __future__ import annotations

import logging
from dataclasses import replace

from agent_memory.features.memories.search.query import SearchQuery
from agent_memory.features.memories.search.ranking import Ranking
from agent_memory.features.memories.store import MemoryStore
from agent_memory.foundation.core.errors import ModelAnswerInvalid, ModelUnavailable
from agent_memory.foundation.core.scope import Scope
from agent_memory.foundation.core.settings import Settings
from agent_memory.foundation.llm.base import Reranker

log = logging.getLogger(__name__)


class RerankedOrder:
    def __init__(self, settings: Settings, store: MemoryStore, reranker: Reranker | None) -> None:
        self._settings = settings.search
        self._store = store
        self._reranker = reranker

    async def rerank_memories(self, scope: Scope, query: SearchQuery, ranking: Ranking) -> Ranking:
        """Reorder the top of the ranking; unchanged, with a notice, if the model gives no answer in time."""
        most, text = self._settings.rerank_candidates, query.request.text
        if self._reranker is None or not text or query.request.offset >= most or not ranking.scored:
            return ranking
        names = [name for _, name in ranking.scored[:most]]
        records = await self._store.fetch_records(scope, names)
        texts = {name: record.text for name, record in zip(names, records, strict=True) if record is not None}
        try:
            scores = await self._reranker.rerank(text, list(texts.values()), timeout=self._settings.rerank_seconds)
        except (ModelUnavailable, ModelAnswerInvalid) as error:
            log.warning("a search is not reranked: %s", error)
            return replace(ranking, notices=["the reranking model gave no answer in time: ordered without it"])
        reranked = dict(zip(texts, scores, strict=True))
        first = sorted([scored for scored in ranking.scored[:most] if scored[1] in reranked], key=lambda scored: -reranked[scored[1]])
        return replace(ranking, scored=[*first, *ranking.scored[most:]], reranked=reranked)
