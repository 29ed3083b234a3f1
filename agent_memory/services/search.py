"""The one search path of REST and the memory prompt: by meaning, by words, or by both in one pipeline, fused by `ranking`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agent_memory import analysis
from agent_memory.errors import BadInput, ModelAnswerInvalid, ModelUnavailable, Refused
from agent_memory.llm.base import Embedder
from agent_memory.scope import Scope
from agent_memory.services import ranking
from agent_memory.services.usage import UsageLog
from agent_memory.settings import Settings
from agent_memory.storage import filters
from agent_memory.storage.connection import Pipe, Reader
from agent_memory.storage.memories import MemoryStore, parse_hits
from agent_memory.timewords import Span, named_time, zone_of
from agent_memory_client.models import (
    HitExplanation,
    MemoryRecord,
    MemoryRecordResult,
    MemoryRecordResultsResponse,
    SearchModeEnum,
    SearchRequest,
    SearchScoreTypeEnum,
)

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
# How deep each list goes before fusion; a later page goes deeper, in steps, so that pages of one search agree.
_DEPTHS = (100, 400, 1600, 6400)


@dataclass(frozen=True, slots=True)
class Plan:
    """A search that is ready for its round trip: what it asks of the index. `mode` None lists without a query."""

    mode: SearchModeEnum | None
    clause: str
    request: SearchRequest
    terms: Sequence[str] = ()
    vector: NDArray[np.float32] | None = None
    depth: int = 100
    span: Span | None = None
    empty: bool = False
    degraded: bool = False

    @property
    def fused(self) -> bool:
        """Whether lists by meaning and by words are put together."""
        return self.mode is SearchModeEnum.HYBRID and self.vector is not None


@dataclass(frozen=True, slots=True)
class Ranked:
    """A memory's place in an answer: its score (0..1, more is better), its distance (0..2), and where they come from."""

    mid: str
    score: float | None
    distance: float
    parts: ranking.Parts | None = None


@dataclass(frozen=True, slots=True)
class Ranking:
    """All that was ranked, best first, and how many memories match; `dropped` were ranked, but are not near enough."""

    total: int
    ranked: list[Ranked]
    dropped: list[Ranked] = field(default_factory=list)


class SearchService:
    """Searches in long-term memory."""

    def __init__(self, settings: Settings, reader: Reader, store: MemoryStore, embedder: Embedder, usage: UsageLog) -> None:
        self._settings = settings
        self._read = reader
        self._store = store
        self._embedder = embedder
        self._usage = usage
        self._no_wait_until = 0.0

    async def search(self, scope: Scope, body: SearchRequest, *, optimize_query: bool = False) -> MemoryRecordResultsResponse:
        """A page of memories. Raises Refused, BadInput, RedisUnavailable.

        When the embedding model is away, searches go by words alone. `optimize_query` is accepted; queries are cleaned in any case.
        """
        plan = await self.prepare(scope, body)
        found = self.rank(plan, await self.run(plan))
        page = self.page(plan, found)
        memories = await self.results(scope, plan, page)
        self.count_reading(scope, plan, memories)
        after = body.offset + body.limit
        more = after < found.total and len(page) == body.limit
        return MemoryRecordResultsResponse(memories=memories, total=found.total, next_offset=after if more else None)

    def count_reading(self, scope: Scope, plan: Plan, memories: Sequence[MemoryRecord]) -> None:
        """Counts that these were found and shown: not in listings, and not for a caller who asked for an answer without recency."""
        if plan.mode is not None and plan.request.recency_boost is not False:
            self._usage.read((self._store.mid(scope, memory.id), memory.access_count) for memory in memories)

    async def run(self, plan: Plan) -> list[Any]:
        """A plan's replies, in one round trip of its own."""
        return [] if plan.empty else await self._read(lambda pipe: self.queue(pipe, plan))

    async def prepare(self, scope: Scope, request: SearchRequest) -> Plan:
        """What must be known before the round trip: the filter, the words, the time that is named, and the query's vector."""
        if not self._settings.longterm.enabled:
            raise Refused("long-term memory is switched off (LONG_TERM_MEMORY=false)", field="long_term_memory", where="settings")
        clause = filters.where(scope, request)
        text = (request.text or "").strip()
        depth = next((d for d in _DEPTHS if d >= 2 * (request.offset + request.limit)), request.offset + request.limit)
        if not text:
            return Plan(None, clause, request, depth=depth)
        mode = _mode(request)
        terms = analysis.query_terms(text)
        vector = None
        if mode is not SearchModeEnum.KEYWORD and any(c.isalnum() for c in text):
            vector = await self._query_vector(await self._cleaned(scope, request, text, terms))
        degraded = vector is None and mode is not SearchModeEnum.KEYWORD
        if not terms and (vector is None or mode is not SearchModeEnum.SEMANTIC):
            return Plan(mode, clause, request, depth=depth, empty=True, degraded=degraded)
        return Plan(mode, clause, request, terms, vector, depth, _span(request, text), degraded=degraded)

    def queue(self, pipe: Pipe, plan: Plan) -> int:
        """Puts the plan's commands on a pipeline; returns how many replies they give."""
        request, store = plan.request, self._store
        if plan.mode is None:
            store.queue_newest(pipe, plan.clause, request.offset, request.limit)
            return 1
        if plan.empty:
            return 0
        if plan.vector is None or plan.mode is SearchModeEnum.KEYWORD:
            store.queue_words(pipe, plan.clause, plan.terms, plan.depth, scorer=request.text_scorer)
            return 1
        if plan.mode is SearchModeEnum.SEMANTIC and request.distance_threshold is not None:
            store.queue_within(pipe, plan.clause, plan.vector, request.distance_threshold, plan.depth)
            return 1
        store.queue_nearest(pipe, plan.clause, plan.vector, plan.depth)
        store.queue_count(pipe, plan.clause)
        if plan.mode is SearchModeEnum.SEMANTIC:
            return 2
        store.queue_words(pipe, plan.clause, plan.terms, plan.depth, scorer=request.text_scorer)
        if plan.span is None:
            return 3
        # What belongs to the time may be far down in the other lists, so it has lists of its own.
        within = filters.during(plan.clause, plan.span.start, plan.span.end)
        store.queue_nearest(pipe, within, plan.vector, plan.depth)
        store.queue_words(pipe, within, plan.terms, plan.depth, scorer=request.text_scorer)
        return 5

    def rank(self, plan: Plan, replies: Sequence[Any]) -> Ranking:
        """The order of what the replies brought."""
        if plan.empty:
            return Ranking(0, [])
        answers = [parse_hits(reply) for reply in replies]
        first = answers[0]
        if plan.mode is None:
            return Ranking(first.total, [Ranked(hit.mid, None, 0.0) for hit in first.hits])
        if plan.vector is None or plan.mode is SearchModeEnum.KEYWORD:
            return Ranking(first.total, [Ranked(hit.mid, s := ranking.saturated(hit.value), 1.0 - s) for hit in first.hits])
        near = {hit.mid: 1.0 - hit.value for hit in first.hits}
        if plan.mode is SearchModeEnum.SEMANTIC:
            total = first.total if len(answers) == 1 else answers[1].total
            return Ranking(total, [Ranked(mid, max(0.0, similarity), 1.0 - similarity) for mid, similarity in near.items()])
        words = {hit.mid: hit.value for hit in answers[2].hits}
        last_word = min(words.values()) if len(words) >= plan.depth else 0.0
        in_time: frozenset[str] = frozenset()
        if plan.span is not None:
            timely = [{hit.mid: hit.value for hit in answer.hits} for answer in answers[3:5]]
            in_time = frozenset(timely[0]) | frozenset(timely[1])
            near |= {mid: 1.0 - distance for mid, distance in timely[0].items()}
            words |= timely[1]
        return self._fused(plan, near, words, in_time, answers[1].total, last_word)

    def _fused(
        self, plan: Plan, near: Mapping[str, float], words: Mapping[str, float], in_time: frozenset[str], total: int, last_word: float
    ) -> Ranking:
        request = plan.request
        alpha = request.hybrid_alpha if "hybrid_alpha" in request.model_fields_set else ranking.ALPHA
        fused = ranking.fuse(near, words, alpha, in_time, last_word=last_word)
        kept = ranking.relevant(fused, self._settings.search.min_similarity)
        names = {parts.name for parts in kept}
        whole = len(near) < plan.depth
        return Ranking(
            # When the lists hold all that there is, what is not near enough does not count as a match either.
            len(kept) if whole else total,
            [_placed(parts) for parts in kept],
            [_placed(parts) for parts in fused if parts.name not in names],
        )

    def page(self, plan: Plan, found: Ranking, without: Collection[str] = ()) -> list[Ranked]:
        """The request's page of a ranking, some memories left out."""
        request = plan.request
        start = 0 if plan.mode is None else request.offset
        rest = [hit for hit in found.ranked if hit.mid not in without] if without else found.ranked
        return rest[start : start + request.limit]

    async def results(self, scope: Scope, plan: Plan, page: Sequence[Ranked]) -> list[MemoryRecordResult]:
        """The memories of a page, read in one round trip; what was deleted meanwhile is left out."""
        records = await self._store.fetch(scope, [hit.mid for hit in page])
        kind = None if plan.mode is None else SearchScoreTypeEnum("keyword" if plan.degraded else plan.mode.value)
        first = plan.request.offset + 1
        explained = plan.request.explain
        return [
            result(record, hit, kind, first + place if explained else None)
            for place, (hit, record) in enumerate(zip(page, records, strict=True))
            if record is not None
        ]

    async def _cleaned(self, scope: Scope, request: SearchRequest, text: str, terms: Sequence[str]) -> str:
        """The query without the words that most of the memories share, and as it is when nothing would be left."""
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
            return text
        common = {term for term, count in zip(terms, counts, strict=True) if count >= COMMON_SHARE * total}
        cleaned = analysis.without(text, common) if len(common) < len(terms) else ""
        return cleaned or text

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


def _mode(request: SearchRequest) -> SearchModeEnum:
    """The mode that was asked for, else what measures best: both, or meaning alone when a distance is asked for."""
    threshold = request.distance_threshold
    if "search_mode" not in request.model_fields_set:
        return SearchModeEnum.HYBRID if threshold is None else SearchModeEnum.SEMANTIC
    if threshold is not None and request.search_mode is not SearchModeEnum.SEMANTIC:
        raise Refused("distance_threshold goes with search_mode semantic only", field="distance_threshold")
    return request.search_mode


def _span(request: SearchRequest, text: str) -> Span | None:
    """The time that the query names, as its user sees it. Raises BadInput for an unknown time zone."""
    try:
        zone = zone_of(request.timezone)
    except ValueError as error:
        raise BadInput(str(error), field="timezone") from error
    return named_time(text, request.reference_time or datetime.now(UTC), zone)


def _placed(parts: ranking.Parts) -> Ranked:
    distance = 1.0 if parts.similarity is None else 1.0 - parts.similarity
    return Ranked(parts.name, min(parts.score, 1.0), distance, parts)


def result(record: MemoryRecord, hit: Ranked, kind: SearchScoreTypeEnum | None, rank: int | None = None) -> MemoryRecordResult:
    """A memory with its place in the answer, and (with a rank) how it came there."""
    fields = {name: getattr(record, name) for name in MemoryRecord.model_fields}
    why = None if rank is None else explanation(hit, rank)
    return MemoryRecordResult.model_construct(**fields, dist=max(hit.distance, 0.0), score=hit.score, score_type=kind, explanation=why)


def explanation(hit: Ranked, rank: int) -> HitExplanation:
    """How a hit was scored."""
    parts = hit.parts
    if parts is None:
        return HitExplanation(rank=rank, score=hit.score, similarity=None if hit.score is None else 1.0 - hit.distance)
    return HitExplanation(
        rank=rank,
        score=parts.score,
        similarity=parts.similarity,
        similarity_rank=parts.similarity_rank,
        words=parts.words,
        words_rank=parts.words_rank,
        in_time=parts.in_time,
    )
