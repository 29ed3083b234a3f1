"""Measure how common the query's words are in the searched memories."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic
from types import SimpleNamespace
from typing import NamedTuple

from agent_memory.features.memories.search.list_scores import TERMS_FIELD, inverse_frequencies, mean_length
from agent_memory.features.memories.store import MemoryStore, parse_hits
from agent_memory.foundation.core.scope import Scope
from agent_memory.foundation.core.settings import Settings
from agent_memory.foundation.storage.connection import Pipe, PipelineReader
from agent_memory.foundation.storage.search import filters
from agent_memory.foundation.text.languages.speakers import speakers_of
from agent_memory_client.models import SearchRequest

# The number of newest memories to sample for the mean length and the speakers.
_SAMPLE = 100
_SAMPLE_TRUST_SECONDS = 600.0
# A search waits for vectors if the memories without one exceed both this number and this share.
_FEW = 20
_MISSING_SHARE = 0.05
_LOOK_SECONDS = 0.05
_RARE_SHARE = 0.1
_STALLED_SECONDS = 30.0
# Assume this many more memories without any of the words: a word common in a few memories may be rare in general.
_OTHERS = 100
# Reuse counts of terms for a minute, unless the total changes a lot. Each search counts the total.
_TRUST_SECONDS = 60.0
_MOST_CLAUSES = 1000
_MOST_TERMS = 256


class TermStatistic(NamedTuple):
    """The number of memories that contain a term, and the term's highest score."""

    memories: int
    best_score: float


@dataclass(slots=True)
class TermStatistics:
    total: int = 0
    terms: Mapping[str, TermStatistic] = field(default_factory=dict[str, TermStatistic])
    mean_length: float = 1.0
    speakers: Collection[str] = frozenset()

    def weights(self) -> Mapping[str, float]:
        """Return each term's weight (IDF), or an empty mapping if there are no memories."""
        return inverse_frequencies(self.total, {term: statistic.memories for term, statistic in self.terms.items()})

    def unknown_share(self, terms: Collection[str]) -> float:
        """Return the weighted share of unknown terms, smoothed by `_OTHERS`."""
        memory_counts = {term: self.terms[term].memories for term in terms if term in self.terms} if self.total else {}
        weights = inverse_frequencies(self.total + _OTHERS, memory_counts)
        total_weight = sum(weights.values())
        return sum(weight for term, weight in weights.items() if not memory_counts[term]) / total_weight if total_weight else 0.0


@dataclass(slots=True)
class _CachedTerms:
    """The term counts for one clause, valid for a minute from `since` (monotonic seconds)."""

    since: float
    total: int = 0
    terms: dict[str, TermStatistic] = field(default_factory=dict[str, TermStatistic])


class _Sample(NamedTuple):
    since: float
    mean_length: float
    speakers: frozenset[str]


class DocumentFrequencies:
    """Counts terms, and caches the counts for a minute."""

    def __init__(self, settings: Settings, reader: PipelineReader, store: MemoryStore) -> None:
        self._settings = settings
        self._read = reader
        self._store = store
        self._no_wait_until = 0.0
        self._counts_by_clause: dict[str, _CachedTerms] = {}
        self._samples: dict[str, _Sample] = {}

    async def count_terms(self, clause: str, terms: Sequence[str], *, settle: bool = False) -> TermStatistics:
        """Return term statistics for the memories that match a clause (see `around`).

        With `settle`, wait briefly if many new memories have no vectors.
        """
        counted_before, now = self._counts_by_clause.get(clause), monotonic()
        if counted_before is None or counted_before.since + _TRUST_SECONDS < now or len(counted_before.terms) > _MOST_TERMS:
            counted_before = _CachedTerms(now)
        sample = self._samples.get(clause)
        fresh = sample is not None and now < sample.since + _SAMPLE_TRUST_SECONDS
        statistics = await self._ask_terms(
            clause, [term for term in terms if term not in counted_before.terms], settle=settle, sample=not fresh
        )
        if counted_before.terms and abs(statistics.total - counted_before.total) > max(_FEW, _MISSING_SHARE * counted_before.total):
            counted = await self._ask_terms(clause, [term for term in terms if term in counted_before.terms], settle=False)
            counted_before = _CachedTerms(now, counted.total, dict(counted.terms))
        counted_before.total = counted_before.total or statistics.total
        counted_before.terms.update(statistics.terms)
        if len(self._counts_by_clause) >= _MOST_CLAUSES:
            self._counts_by_clause.clear()
            self._samples.clear()
        self._counts_by_clause[clause] = counted_before
        if not fresh:
            sample = _Sample(now, statistics.mean_length, frozenset(statistics.speakers))
            # Do not keep a small sample, which says little about later memories.
            if statistics.total >= _SAMPLE:
                self._samples[clause] = sample
        assert sample is not None
        return TermStatistics(statistics.total, {term: counted_before.terms[term] for term in terms}, sample.mean_length, sample.speakers)

    async def _ask_terms(self, clause: str, terms: Sequence[str], *, settle: bool, sample: bool = False) -> TermStatistics:
        def build(pipe: Pipe) -> None:
            self._queue_counts(pipe, clause)
            for term in terms:
                self._store.queue_words(pipe, clause, [term], 1)
            if sample:
                self._store.queue_sample(pipe, clause, _SAMPLE)

        total, embedded, *hits = map(parse_hits, await self._read(build))
        documents = [text.decode() for text in hits.pop().texts(TERMS_FIELD)] if sample else []
        missing = total.total - embedded.total
        if settle and missing > max(_FEW, _MISSING_SHARE * total.total):
            await self._wait_for_vectors(clause, missing)
        statistics = {term: TermStatistic(hit.total, max(hit.values, default=0.0)) for term, hit in zip(terms, hits, strict=True)}
        return TermStatistics(total.total, statistics, mean_length(documents), speakers_of(documents))

    def _queue_counts(self, pipe: Pipe, clause: str) -> None:
        self._store.queue_count(pipe, clause)
        self._store.queue_count(pipe, clause, embedded=True)

    async def _wait_for_vectors(self, clause: str, missing: int) -> None:
        """Wait up to `settle_seconds` for missing vectors, unless a recent wait failed."""
        loop = asyncio.get_running_loop()
        until = loop.time() + self._settings.search.settle_seconds
        if loop.time() < self._no_wait_until:
            return
        left = missing
        while left > _FEW and loop.time() < until:
            await asyncio.sleep(_LOOK_SECONDS)
            total, embedded = (parse_hits(reply).total for reply in await self._read(lambda pipe: self._queue_counts(pipe, clause)))
            left = total - embedded
        if left >= missing:
            self._no_wait_until = loop.time() + _STALLED_SECONDS


def around(scope: Scope, request: SearchRequest, where: str) -> str:
    """Return the clause that matches all memories for the request's users and namespaces."""
    if filters.only(request, ("user_id", "namespace")):
        return where
    return filters.where(scope, SimpleNamespace(user_id=request.user_id, namespace=request.namespace))


def overrated(terms: Sequence[str], statistics: TermStatistics) -> Sequence[str]:
    """Return common words whose incorrect scores would outweigh all other words.

    Return an empty sequence if all words are affected.

    RediSearch 2.10 computes N - n in BM25's IDF as an unsigned number. A word in nearly all memories gets an IDF of
    about 39 instead of 0. A correct score is at most (k1 + 1) * ln(1 + N / (n + 0.5)) (Robertson, Zaragoza 2009).
    """
    too_high: list[str] = []
    for term in terms:
        statistic = statistics.terms.get(term)
        if statistic is None or statistic.memories < _RARE_SHARE * statistics.total:
            continue
        if statistic.best_score > 2.2 * math.log(1 + 1e7 / (statistic.memories + 0.5)):
            too_high.append(term)
    return too_high if len(too_high) < len(terms) else ()
