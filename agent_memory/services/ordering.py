"""The last word on a ranking's order: the age of memories, and a reranking model where one is configured."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from operator import itemgetter
from typing import TypeVar

from agent_memory.errors import ModelAnswerInvalid, ModelUnavailable
from agent_memory.llm.base import Reranker
from agent_memory.scope import Scope
from agent_memory.services import ranking
from agent_memory.services.plans import Places, Plan, Ranking
from agent_memory.settings import Settings
from agent_memory.storage.memories import MemoryStore
from agent_memory_client.models import SearchModeEnum

log = logging.getLogger(__name__)


class Ordering:
    """Orders all that was ranked, before any page is cut out of it."""

    def __init__(self, settings: Settings, store: MemoryStore, reranker: Reranker | None) -> None:
        self._settings = settings.search
        self._store = store
        self._reranker = reranker

    @property
    def reranks(self) -> bool:
        """Whether there is a reranking model, which looks at a ranking as it is without it."""
        return self._reranker is not None

    async def ordered(self, scope: Scope, plan: Plan, found: Ranking) -> Ranking:
        """The ranking in its final order. Which memories are in it, and their scores, stay as they are."""
        if plan.mode is None or not found.ranked:
            return found
        weights = plan.weights
        # Who names a time says by that which age is wanted.
        if weights is not None and isinstance(found.ranked, Places) and not (weights is ranking.MILD and plan.span is not None):
            found = replace(found, ranked=await self._by_age(plan, found.ranked, weights))
        return await self._reranked(scope, plan, found)

    async def _by_age(self, plan: Plan, places: Places, weights: ranking.RecencyWeights) -> Places:
        moment = (plan.request.reference_time or datetime.now(UTC)).timestamp()
        created, accessed = places.created, places.accessed
        if weights.freshness:
            read = await self._store.last_readings([name for _, name in places.order])
            accessed = {name: max(accessed.get(name, 0.0) or created.get(name, 0.0), read.get(name, 0.0)) for _, name in places.order}

        def recency(name: str) -> float:
            age = moment - created.get(name, 0.0)
            return ranking.recency(moment - accessed[name] if weights.freshness else age, age, weights)

        if plan.request.server_side_recency and plan.mode is SearchModeEnum.SEMANTIC:
            # The contract's two ways to make a similarity of a distance.
            similar = [1.0 - hit.distance / 2 for hit in places]
        else:
            similar = [score for score, _ in places.order]
        semantic, weight = weights.semantic, weights.recency
        if weights.freshness:
            recent = [recency(name) for _, name in places.order]
        else:
            # What every search asks for, of hundreds.
            recent = ranking.novelties([moment - created.get(name, 0.0) for _, name in places.order], weights)
        aged = [(semantic * alike + weight * new, one) for alike, new, one in zip(similar, recent, places.order, strict=True)]
        aged.sort(key=itemgetter(0), reverse=True)
        return places.reordered([one for _, one in aged], recency)

    async def _reranked(self, scope: Scope, plan: Plan, found: Ranking) -> Ranking:
        """The first of the ranking in the order of the reranker's scores; as it is, with a notice, when these cannot be had in time."""
        most, query = self._settings.rerank_candidates, plan.request.text
        if self._reranker is None or not query or plan.request.offset >= most:
            return found
        records = await self._store.fetch(scope, [hit.mid for hit in found.ranked[:most]])
        there = [(hit, record) for hit, record in zip(found.ranked, records, strict=False) if record is not None]
        try:
            scores = await self._reranker.rerank(query, [record.text for _, record in there], timeout=self._settings.rerank_seconds)
        except (ModelUnavailable, ModelAnswerInvalid) as error:
            log.warning("a search is not reranked: %s", error)
            return replace(found, notices=[*found.notices, "the reranking model gave no answer in time: ordered without it"])
        best = sorted(zip(scores, there, strict=True), key=lambda pair: -pair[0])
        return replace(found, ranked=[*(hit._replace(reranked=score) for score, (hit, _) in best), *found.ranked[most:]])


_One = TypeVar("_One")


def by_age(plan: Plan, scored: Sequence[tuple[float, _One]], created: Sequence[float]) -> list[tuple[float, _One]]:
    """What has scores, best first, in the order that mild weights give it with the times (epoch seconds) when it was made."""
    moment = (plan.request.reference_time or datetime.now(UTC)).timestamp()
    recent = ranking.novelties([moment - at for at in created], ranking.MILD)
    aged = [(one[0] + ranking.MILD.recency * new, one) for new, one in zip(recent, scored, strict=True)]
    aged.sort(key=itemgetter(0), reverse=True)
    return [one for _, one in aged]
