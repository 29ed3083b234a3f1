"""Find memories a subject could mean, by words and vector, in all versions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from redis.asyncio import Redis

from agent_memory.features.access.embedding_budget import EmbeddingBudget
from agent_memory.features.memories.store import MemoryStore, parse_hits
from agent_memory.features.memories.upkeep.scan import Selection
from agent_memory.features.privacy.lineage import LineageMemory, LineageStore
from agent_memory.foundation.core.errors import ModelUnavailable, TooMany
from agent_memory.foundation.core.scope import Scope
from agent_memory.foundation.storage.connection import Pipe, read
from agent_memory.foundation.storage.search import filters
from agent_memory.foundation.storage.search.results import PAST
from agent_memory.foundation.text.stemming.foreign import is_in_other_script
from agent_memory.foundation.text.terms import query_terms
from agent_memory_client.models import MemoryType, MemoryTypeEnum

# Per index; `ForgetService` asks again until nothing more is found.
_BY_WORDS = 1000
_BY_VECTOR = 20
# A similar memory is listed but never removed for it: docs/memory/forgetting.md has the measurements.
NEAR = 0.55
_SECONDS = 2.0


class CandidateFinder:
    def __init__(self, client: Redis, memories: MemoryStore, lineage: LineageStore, budget: EmbeddingBudget, *, latin_only: bool) -> None:
        """`latin_only`: the embedder does not know other scripts, so their vectors are not used."""
        self._client = client
        self._memories = memories
        self._lineage = lineage
        self._budget = budget
        self._latin_only = latin_only

    async def find(self, scope: Scope, selection: Selection, text: str) -> tuple[list[LineageMemory], set[str]]:
        """Return memories whose versions share a word or are similar, and the mids of similar ones."""
        clause = filters.where(scope, selection)
        terms = query_terms(text)
        vector = None if self._latin_only and is_in_other_script(text) else await self._vector(scope, text)

        def build(pipe: Pipe) -> None:
            for past in (False, True):
                if terms:
                    self._memories.queue_words(pipe, clause, terms, _BY_WORDS, past=past)
                if vector is not None:
                    self._memories.queue_nearest(pipe, clause, vector, _BY_VECTOR, past=past)

        replies = [parse_hits(reply) for reply in await read(self._client, build)] if terms or vector is not None else []
        near = {_mid(hit.mid) for hits in replies if hits.distances for hit in hits.hits if 1.0 - hit.value >= NEAR}
        named = {_mid(hit.mid): None for hits in replies if not hits.distances for hit in hits.hits}
        return await self._lineage.read(scope, list(named | dict.fromkeys(near))), near

    async def _vector(self, scope: Scope, text: str) -> NDArray[np.float32] | None:
        """Return None without a model: words alone decide then."""
        try:
            return (await self._budget.metered_embedder(scope.tenant).embed([text], role="query", timeout=_SECONDS))[0]
        except (ModelUnavailable, TooMany):
            return None


def facts_of(namespace: str | None, user_id: str | None) -> Selection:
    owner = Selection.of(namespace, user_id)
    return Selection(user_id=owner.user_id, namespace=owner.namespace, memory_type=MemoryType(ne=MemoryTypeEnum.MESSAGE))


def _mid(name: str) -> str:
    return name.removeprefix(PAST).partition(".")[0]
