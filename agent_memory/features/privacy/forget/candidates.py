"""Find memories that a subject could refer to, using word and vector search."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from redis.asyncio import Redis

from agent_memory.features.access.tenant_models import TenantModels
from agent_memory.features.memories.store import MemoryStore, parse_hits
from agent_memory.features.memories.upkeep.scan import Selection
from agent_memory.features.privacy.lineage import LineageMemory, LineageStore
from agent_memory.foundation.core.errors import ModelUnavailable, TooMany
from agent_memory.foundation.core.scope import Scope
from agent_memory.foundation.llm.base import TextRole
from agent_memory.foundation.llm.profiles import profile_of
from agent_memory.foundation.storage.connection import Pipe, read
from agent_memory.foundation.storage.search import filters
from agent_memory.foundation.storage.search.results import PAST
from agent_memory.foundation.text.stemming.foreign import is_in_other_script
from agent_memory.foundation.text.terms import query_terms
from agent_memory_client.models import MemoryType, MemoryTypeEnum

# The maximum number of hits per index.
_BY_WORDS = 1000
_BY_VECTOR = 20
_SECONDS = 2.0


class CandidateFinder:
    def __init__(self, client: Redis, memories: MemoryStore, lineage: LineageStore, models: TenantModels, *, latin_only: bool) -> None:
        """If `latin_only` is true, use vectors only for text in Latin script."""
        self._client = client
        self._memories = memories
        self._lineage = lineage
        self._models = models
        self._latin_only = latin_only

    async def find(self, scope: Scope, selection: Selection, text: str) -> tuple[list[LineageMemory], dict[str, float]]:
        """Return memories with a version that shares a word with `text` or resembles it.

        The dict maps the mids of similar memories to their cosine similarities.
        """
        clause = filters.where(scope, selection)
        terms = query_terms(text)
        vector = await self._vector(scope, text)

        def build(pipe: Pipe) -> None:
            for past in (False, True):
                if terms:
                    self._memories.queue_words(pipe, clause, terms, _BY_WORDS, past=past)
                if vector is not None:
                    self._memories.queue_nearest(pipe, clause, vector, _BY_VECTOR, past=past)

        replies = [parse_hits(reply) for reply in await read(self._client, build)] if terms or vector is not None else []
        least = self._least(scope)
        hits = [(_mid(hit.mid), 1.0 - hit.value) for reply_hits in replies if reply_hits.distances for hit in reply_hits.hits]
        near: dict[str, float] = {}
        for mid, cosine in hits:
            if cosine >= least:
                near[mid] = max(cosine, near.get(mid, 0.0))
        named = {_mid(hit.mid): None for reply_hits in replies if not reply_hits.distances for hit in reply_hits.hits}
        return await self._lineage.read(scope, list(named | dict.fromkeys(near))), near

    async def cosines(self, scope: Scope, text: str, sentences: Sequence[str]) -> list[float]:
        """Return the text's cosine similarity to each sentence.

        Low similarities become 0. If no model is available, all of them are 0.
        """
        vector = await self._vector(scope, text)
        rows = None if vector is None else await self._embed(scope, sentences, "document")
        if vector is None or rows is None:
            return [0.0] * len(sentences)
        least = self._least(scope)
        return [float(cosine) if cosine >= least else 0.0 for cosine in rows @ vector]

    def _least(self, scope: Scope) -> float:
        return profile_of(self._models.embedder(scope.tenant).model).least

    async def _vector(self, scope: Scope, text: str) -> NDArray[np.float32] | None:
        rows = None if self._latin_only and is_in_other_script(text) else await self._embed(scope, [text], "query")
        return None if rows is None else rows[0]

    async def _embed(self, scope: Scope, texts: Sequence[str], role: TextRole) -> NDArray[np.float32] | None:
        try:
            return await self._models.embedder(scope.tenant).embed(texts, role=role, timeout=_SECONDS)
        except (ModelUnavailable, TooMany):
            return None


def facts_of(namespace: str | None, user_id: str | None) -> Selection:
    owner = Selection.of(namespace, user_id)
    return Selection(user_id=owner.user_id, namespace=owner.namespace, memory_type=MemoryType(ne=MemoryTypeEnum.MESSAGE))


def _mid(name: str) -> str:
    return name.removeprefix(PAST).partition(".")[0]
