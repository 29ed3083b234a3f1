"""From a search request to its plan: the filter, the words, the time that is named, and the query's vector."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
from numpy.typing import NDArray

from agent_memory import analysis
from agent_memory.errors import ModelAnswerInvalid, ModelUnavailable, Refused
from agent_memory.llm.base import Embedder
from agent_memory.scope import Scope
from agent_memory.services.plans import Plan, depth_of, mode_of, span_of, subject_of
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
# What stands in fewer of the memories than this is rare.
_SHARED = 0.1
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
        subject = subject_of(text, span)
        depth = depth_of(request)
        if not text:
            return Plan(None, clause, request, depth=depth, past=past)
        mode = mode_of(request)
        terms = analysis.query_terms(text)
        vector: NDArray[np.float32] | None = None
        spoken, rewritten = text, False
        left_out: Sequence[str] = ()
        notices: list[str] = []
        known = _Known(0, {})
        if mode is not SearchModeEnum.KEYWORD and any(c.isalnum() for c in text):
            # The contract rewrites semantic searches only; a search that names no mode is one, too.
            if optimize and ("search_mode" not in request.model_fields_set or mode is SearchModeEnum.SEMANTIC):
                spoken, notice = await self._rewriter.rewritten(scope.tenant, text)
                rewritten = notice is None
                notices += [notice] if notice else []
            asked = analysis.query_terms(spoken) if rewritten else terms
            known = await self._known(scope, request, [*dict.fromkeys([*terms, *asked])], settle=True)
            spoken, left_out = _cleaned(spoken, asked, known, subject)
            vector = await self._query_vector(spoken)
            if vector is None:
                notices.append("the embedding model does not answer: searched by words alone")
        elif len(terms) > 1:
            known = await self._known(scope, request, terms)
        # A search that names no mode is one by meaning in the contract, where quotes say nothing.
        quoted = mode is not SearchModeEnum.SEMANTIC and "search_mode" in request.model_fields_set
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
            subject,
            degraded=degraded,
            spoken=spoken if vector is not None else None,
            left_out=left_out,
            notices=notices,
            scorer=request.text_scorer,
            rewritten=rewritten,
            past=past,
            muted=_overrated(terms, known),
            phrases=analysis.phrases(text) if quoted else (),
            loose=analysis.loose_terms(text) if quoted else (),
        )

    async def _known(self, scope: Scope, request: SearchRequest, terms: Sequence[str], *, settle: bool = False) -> _Known:
        """What the index knows of some words among the memories of the request's users and namespaces, in one round trip.

        With `settle` it waits a moment for a bulk of memories that were just written.
        """
        clause = filters.where(scope, SimpleNamespace(user_id=request.user_id, namespace=request.namespace))
        asked = terms if len(terms) > 1 else ()

        def build(pipe: Pipe) -> None:
            self._store.queue_count(pipe, clause)
            self._store.queue_count(pipe, clause, embedded=True)
            for term in asked:
                self._store.queue_words(pipe, clause, [term], 1)

        total, embedded, *found = (parse_hits(reply) for reply in await self._read(build))
        missing = total.total - embedded.total
        if settle and missing > max(_FEW, _MISSING_SHARE * total.total):
            await self._until_embedded(clause, missing)
        words = {term: (hits.total, max((hit.value for hit in hits.hits), default=0.0)) for term, hits in zip(asked, found, strict=True)}
        return _Known(total.total, words)

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


@dataclass(frozen=True, slots=True)
class _Known:
    """How many memories there are, and for each word in how many it stands and how much it adds to a score at most."""

    total: int
    words: Mapping[str, tuple[int, float]]


def _cleaned(text: str, terms: Sequence[str], known: _Known, subject: Sequence[str]) -> tuple[str, Sequence[str]]:
    """The query without the words that most of the memories share, and these; as it is when nothing would be left (of the `subject` of a
    query that names a time, either: what only quotes that time would be nearest)."""
    if known.total < _ENOUGH or not known.words:
        return text, ()
    common = {term for term in terms if known.words[term][0] >= COMMON_SHARE * known.total}
    nothing = common.issuperset(subject) if subject else len(common) == len(terms)
    cleaned = "" if nothing else analysis.without(text, common)
    return (cleaned, sorted(common)) if cleaned else (text, ())


def _overrated(terms: Sequence[str], known: _Known) -> Sequence[str]:
    """Words that many memories share and that would yet outweigh all others; none when it is all of them.

    RediSearch 2.10 computes BM25's IDF from N - n without a sign, and n counts rewritten documents several times until its collector runs.
    A word of nearly all memories of a small store then gets an IDF of about 39 instead of about 0. No word can score more than
    (k1 + 1) * ln(1 + N / (n + 0.5)) (Robertson, Zaragoza 2009), so what does, even for ten million memories, is such a word. One that
    stands in few memories may outweigh the others: it is what was asked for.
    """
    found = [
        term
        for term in terms
        if term in known.words
        and known.words[term][0] >= _SHARED * known.total
        and known.words[term][1] > 2.2 * math.log(1 + 1e7 / (known.words[term][0] + 0.5))
    ]
    return found if len(found) < len(terms) else ()
