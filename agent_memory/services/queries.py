"""From a search request to its plan: the filter, the words, the time that is named, and the query's vector."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agent_memory import analysis
from agent_memory.errors import BudgetSpent, ModelAnswerInvalid, ModelUnavailable, Refused
from agent_memory.scope import Scope
from agent_memory.services import shares
from agent_memory.services.again import Asked
from agent_memory.services.plans import Plan, depth_of, mode_of, recency_of, span_of, subject_of
from agent_memory.services.query_vectors import QueryVectors
from agent_memory.services.rewriting import Rewriter
from agent_memory.services.shares import NOTHING_KNOWN, Shares
from agent_memory.settings import Settings
from agent_memory.storage import filters
from agent_memory.storage.codec import changed
from agent_memory.storage.connection import Reader
from agent_memory.storage.memories import MemoryStore
from agent_memory_client.models import SearchModeEnum, SearchRequest

log = logging.getLogger(__name__)


class QueryReader:
    """Makes plans."""

    def __init__(self, settings: Settings, reader: Reader, store: MemoryStore, vectors: QueryVectors, rewriter: Rewriter) -> None:
        self._settings = settings
        self._shares = Shares(settings, reader, store)
        self._vectors = vectors
        self._rewriter = rewriter

    async def plan(self, scope: Scope, request: SearchRequest, *, optimize: bool = False, anew: bool = False, paged: bool = True) -> Plan:
        """What must be known before the round trip. Raises Refused, BadInput, RedisUnavailable.

        When the embedding model is away, the plan goes by words alone. With `optimize` a language model puts the query into other words
        for the comparison by meaning; when that cannot be had, the plan says so in its notices and is the plain one. With `anew` it is
        made from nothing that was remembered of former searches; `paged` says whether further pages may be asked for.
        """
        if not self._settings.longterm.enabled:
            raise Refused("long-term memory is switched off (LONG_TERM_MEMORY=false)", field="long_term_memory", where="settings")
        request, notices = self._bounded(request)
        whole = filters.where(scope, request)
        clause, past = filters.clauses(scope, request, whole)
        text = (request.text or "").strip()
        span = span_of(request, text)
        subject = subject_of(text, span)
        depth = depth_of(request, paged=paged)
        if not text:
            return Plan(None, clause, request, depth=depth, past=past, notices=notices)
        mode = mode_of(request)
        terms = analysis.query_terms(text)
        vector: NDArray[np.float32] | None = None
        spoken, rewritten = text, False
        left_out: Sequence[str] = ()
        known = NOTHING_KNOWN
        around = whole if filters.only(request, shares.AROUND) else shares.around(scope, request)
        if mode is not SearchModeEnum.KEYWORD:
            # The contract rewrites semantic searches only; a search that names no mode is one, too.
            if optimize and ("search_mode" not in request.model_fields_set or mode is SearchModeEnum.SEMANTIC):
                spoken, notice = await self._rewriter.rewritten(scope.tenant, text)
                rewritten = notice is None
                notices += [notice] if notice else []
            asked = analysis.query_terms(spoken) if rewritten else terms
            also = self._vectors.asking(scope.tenant, spoken)
            said = spoken
            known, kept = await self._shares.known(around, [*dict.fromkeys([*terms, *asked])], settle=True, anew=anew, also=also)
            if mode is SearchModeEnum.HYBRID:
                # A distance that was asked for by meaning alone is that of the text as it is.
                spoken, left_out = shares.cleaned(said, asked, known, subject)
            vector, why = await self._query_vector(scope.tenant, said, spoken, kept)
            if why is not None:
                notices.append(f"{why}: searched by words alone")
        elif len(terms) > 1:
            known, _ = await self._shares.known(around, terms, anew=anew)
        # A search that names no mode is one by meaning in the contract, where quotes say nothing.
        quoted = mode is not SearchModeEnum.SEMANTIC and "search_mode" in request.model_fields_set
        degraded = vector is None and mode is not SearchModeEnum.KEYWORD
        if not terms and vector is None:
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
            muted=shares.overrated(terms, known),
            phrases=analysis.phrases(text) if quoted else (),
            loose=analysis.loose_terms(text) if quoted else (),
            known=known,
            around=around if known.remembered and not (around == whole and _counts(request)) else None,
            paged=paged,
            weights=recency_of(request),
            asked=Asked(whole, text, request.offset, request.limit),
        )

    def outrun(self, plan: Plan, total: int) -> bool:
        """Whether there are so many more or fewer memories by now, `total` of them, that the plan must be made anew."""
        return self._shares.outrun(plan.known, total)

    def _bounded(self, request: SearchRequest) -> tuple[SearchRequest, list[str]]:
        """The request with as much of its query as is read, and a notice when that is not all of it."""
        most, text = self._settings.limits.query_bytes, (request.text or "").strip()
        # No character takes more than four bytes.
        if len(text) * 4 <= most or (len(text) <= most and len(text.encode()) <= most):
            return request, []
        # No byte is less than a character, and half a character at the end is none.
        beginning = text[:most].encode()[:most].decode(errors="ignore")
        notice = f"the query is longer than {most} bytes (MAX_QUERY_BYTES): searched for its beginning"
        return changed(request, text=beginning), [notice]

    async def _query_vector(self, tenant: str, query: str, spoken: str, kept: Any) -> tuple[NDArray[np.float32] | None, str | None]:
        """The query's vector, or why there is none: the model does not give one in time, or the tenant's tokens are spent."""
        try:
            timeout = self._settings.models.query_embedding_timeout_seconds
            return await self._vectors.vector(tenant, query, spoken, kept, timeout=timeout), None
        except BudgetSpent:
            return None, "the tenant's model tokens of today are spent (LIMIT_MODEL_TOKENS_PER_DAY)"
        except (ModelUnavailable, ModelAnswerInvalid) as error:
            log.warning("searching by words alone: %s", error)
            return None, "the embedding model does not answer"


def _counts(request: SearchRequest) -> bool:
    """Whether the search itself counts all that its filters let through."""
    of_another_time = request.as_of is not None or request.known_at is not None or request.history
    return request.distance_threshold is None and not of_another_time
