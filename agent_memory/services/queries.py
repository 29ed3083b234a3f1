"""From a search request to its plan: the filter, the words, the time that is named, and the query's vector."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from types import SimpleNamespace

import numpy as np
from numpy.typing import NDArray

from agent_memory import analysis
from agent_memory.errors import ModelAnswerInvalid, ModelUnavailable, Refused
from agent_memory.llm.base import Embedder
from agent_memory.scope import Scope
from agent_memory.services.plans import Plan, depth_of, mode_of, span_of
from agent_memory.services.rewriting import Rewriter
from agent_memory.settings import Settings
from agent_memory.storage import filters
from agent_memory.storage.connection import Pipe, Reader
from agent_memory.storage.memories import MemoryStore, parse_hits
from agent_memory_client.models import SearchModeEnum, SearchRequest

log = logging.getLogger(__name__)

# Words that stand in or around at least this share of the memories say nothing about which of them is meant (names, above all).
COMMON_SHARE = 0.30
# Below this many memories shares of them mean nothing.
_ENOUGH = 30
# A search waits for memories without a vector when there are more than this many and this share of all that it searches.
_FEW = 20
_MISSING_SHARE = 0.05
_LOOK_SECONDS = 0.05
_STALLED_SECONDS = 30.0


class QueryReader:
    """Makes plans."""

    def __init__(self, settings: Settings, reader: Reader, store: MemoryStore, embedder: Embedder, rewriter: Rewriter) -> None:
        self._settings = settings
        self._read = reader
        self._store = store
        self._embedder = embedder
        self._rewriter = rewriter
        self._no_wait_until = 0.0

    async def plan(self, scope: Scope, request: SearchRequest, *, optimize: bool = False) -> Plan:
        """What must be known before the round trip. Raises Refused, BadInput, RedisUnavailable.

        When the embedding model is away, the plan goes by words alone. With `optimize` a language model puts the query into other words
        for the comparison by meaning; when that cannot be had, the plan says so in its notices and is the plain one.
        """
        if not self._settings.longterm.enabled:
            raise Refused("long-term memory is switched off (LONG_TERM_MEMORY=false)", field="long_term_memory", where="settings")
        clause, past = filters.clauses(scope, request)
        text = (request.text or "").strip()
        span = span_of(request, text)
        depth = depth_of(request)
        if not text:
            return Plan(None, clause, request, depth=depth, past=past)
        mode = mode_of(request)
        terms = analysis.query_terms(text)
        vector: NDArray[np.float32] | None = None
        spoken, rewritten = text, False
        left_out: Sequence[str] = ()
        notices: list[str] = []
        if mode is not SearchModeEnum.KEYWORD and any(c.isalnum() for c in text):
            # The contract rewrites semantic searches only; a search that names no mode is one, too.
            if optimize and ("search_mode" not in request.model_fields_set or mode is SearchModeEnum.SEMANTIC):
                spoken, notice = await self._rewriter.rewritten(text)
                rewritten = notice is None
                notices += [notice] if notice else []
            spoken, left_out = await self._cleaned(scope, request, spoken, analysis.query_terms(spoken) if rewritten else terms)
            vector = await self._query_vector(spoken)
            if vector is None:
                notices.append("the embedding model does not answer: searched by words alone")
        degraded = vector is None and mode is not SearchModeEnum.KEYWORD
        if not terms and (vector is None or mode is not SearchModeEnum.SEMANTIC):
            return Plan(mode, clause, request, depth=depth, empty=True, degraded=degraded, notices=notices)
        return Plan(
            mode,
            clause,
            request,
            terms,
            vector,
            depth,
            span,
            degraded=degraded,
            spoken=spoken if vector is not None else None,
            left_out=left_out,
            notices=notices,
            scorer=request.text_scorer,
            rewritten=rewritten,
            past=past,
        )

    async def _cleaned(self, scope: Scope, request: SearchRequest, text: str, terms: Sequence[str]) -> tuple[str, Sequence[str]]:
        """The query without the words that most of the memories share, and these; as it is when nothing would be left."""
        population = SimpleNamespace(user_id=request.user_id, namespace=request.namespace)
        clause = filters.where(scope, population)

        def build(pipe: Pipe) -> None:
            self._store.queue_count(pipe, clause)
            self._store.queue_count(pipe, clause, embedded=True)
            for term in terms if len(terms) > 1 else ():
                self._store.queue_count(pipe, filters.having(clause, [term]))

        total, embedded, *counts = (parse_hits(reply).total for reply in await self._read(build))
        if total - embedded > max(_FEW, _MISSING_SHARE * total):
            await self._until_embedded(clause, total - embedded)
        if total < _ENOUGH or not counts:
            return text, ()
        common = {term for term, count in zip(terms, counts, strict=True) if count >= COMMON_SHARE * total}
        cleaned = analysis.without(text, common) if len(common) < len(terms) else ""
        return (cleaned, sorted(common)) if cleaned else (text, ())

    async def _until_embedded(self, clause: str, missing: int) -> None:
        """Waits, for a moment at most, while a bulk of memories that were just written gets its vectors.

        A search in half of them would be an answer, but not the right one. When no worker is at it, searches do not wait for a while.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + self._settings.search.settle_seconds
        if loop.time() < self._no_wait_until:
            return
        left = missing
        while left > _FEW and loop.time() < until:
            await asyncio.sleep(_LOOK_SECONDS)

            def build(pipe: Pipe) -> None:
                self._store.queue_count(pipe, clause)
                self._store.queue_count(pipe, clause, embedded=True)

            total, embedded = (parse_hits(reply).total for reply in await self._read(build))
            left = total - embedded
        if left >= missing:
            self._no_wait_until = loop.time() + _STALLED_SECONDS

    async def _query_vector(self, text: str) -> NDArray[np.float32] | None:
        """The query's vector, or None when the model does not give one in time."""
        try:
            return (await self._embedder.embed([text], timeout=self._settings.models.query_embedding_timeout_seconds))[0]
        except (ModelUnavailable, ModelAnswerInvalid) as error:
            log.warning("searching by words alone: %s", error)
            return None
