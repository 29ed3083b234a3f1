"""The candidates of a search: the lists that it asks the index for, as commands on a pipeline, and the hits of their replies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum, auto
from typing import Any

from agent_memory.features.memories.search.list_scores import rescored
from agent_memory.features.memories.search.query import SearchQuery
from agent_memory.features.memories.store import Hits, MemoryStore, parse_hits
from agent_memory.foundation.core.clock import zone_of
from agent_memory.foundation.storage.connection import Pipe
from agent_memory.foundation.storage.search import filters
from agent_memory_client.models import SearchModeEnum


class CandidateList(Enum):
    """A list that the index is asked for."""

    NEAREST = auto()
    """The nearest by meaning, with their distances."""
    WITHIN_DISTANCE = auto()
    """All within the distance that the request names."""
    MATCHING = auto()
    """Only how many the filter lets through."""
    BEST_BY_WORDS = auto()
    """The best by words, with their scores."""
    NEAREST_IN_TIME = auto()
    """As the lists above, of the time that the query names: what belongs to it may be far down in them."""
    BEST_BY_WORDS_IN_TIME = auto()
    NEAREST_FACTS = auto()
    """As the lists above, of what is no message: however much chat is nearer, it is not crowded out."""
    BEST_FACTS_BY_WORDS = auto()
    """Only where a search goes by words alone."""
    NEAREST_PASSAGES = auto()
    """Passages of long memories, which a list of memories holds by their beginnings."""
    BEST_PASSAGES_BY_WORDS = auto()


_BY_WORDS = frozenset(
    {
        CandidateList.BEST_BY_WORDS,
        CandidateList.BEST_BY_WORDS_IN_TIME,
        CandidateList.BEST_FACTS_BY_WORDS,
        CandidateList.BEST_PASSAGES_BY_WORDS,
    }
)
# What a caller does not name another of.
_OWN_SCORER = "BM25STD"
FACTS_DEPTH = 16
"""How deep the lists of facts go: a prompt shows half as many, in a handful of hundred tokens."""

Candidates = Mapping[CandidateList, Hits]
"""The hits of each list that was asked for."""


def lists_of(query: SearchQuery) -> Sequence[CandidateList]:
    """The lists that a query needs, in the order of its commands; none for a query that can match nothing."""
    if query.empty:
        return ()
    if query.meaning is None:
        if query.facts_apart:
            return (CandidateList.BEST_BY_WORDS, CandidateList.BEST_FACTS_BY_WORDS)
        return (CandidateList.BEST_BY_WORDS,)
    if query.mode is SearchModeEnum.SEMANTIC:
        if query.request.distance_threshold is not None:
            return (CandidateList.WITHIN_DISTANCE,)
        passages = (CandidateList.NEAREST_PASSAGES,) if query.history is None else ()
        return (CandidateList.NEAREST, CandidateList.MATCHING, *passages)
    return _hybrid_lists(query)


def _hybrid_lists(query: SearchQuery) -> list[CandidateList]:
    lists = [CandidateList.NEAREST]
    if query.paged:
        # How many there are is said with a page; a prompt shows what it shows.
        lists.append(CandidateList.MATCHING)
    by_words = bool(query.words.terms)
    if by_words:
        lists.append(CandidateList.BEST_BY_WORDS)
    if query.history is None and not query.words.phrase:
        lists += [CandidateList.NEAREST_PASSAGES, *([CandidateList.BEST_PASSAGES_BY_WORDS] if by_words else [])]
    if query.span is not None:
        lists += [CandidateList.NEAREST_IN_TIME, *([CandidateList.BEST_BY_WORDS_IN_TIME] if by_words else [])]
    if query.facts_apart:
        # Words that facts share with a query count where the list of all memories has them: one list more is what this may cost.
        lists.append(CandidateList.NEAREST_FACTS)
    return lists


def queue_candidates(pipe: Pipe, store: MemoryStore, query: SearchQuery) -> int:
    """Puts a query's commands on a pipeline; returns how many replies they give, which `parse_candidates` takes."""
    lists = lists_of(query)
    for wanted in lists:
        _queue_list(pipe, store, query, wanted, query.clause, past=False)
    if query.history is None:
        return len(lists)
    for wanted in lists:
        _queue_list(pipe, store, query, wanted, query.history, past=True)
    return 2 * len(lists)


def _queue_list(pipe: Pipe, store: MemoryStore, query: SearchQuery, wanted: CandidateList, clause: str, *, past: bool) -> None:
    request, words, fields = query.request, query.words, query.age.index_fields
    terms, depth = words.terms, query.depth
    if wanted in (CandidateList.NEAREST_FACTS, CandidateList.BEST_FACTS_BY_WORDS):
        clause, depth = filters.facts(clause), FACTS_DEPTH
    if query.span is not None and wanted in (CandidateList.NEAREST_IN_TIME, CandidateList.BEST_BY_WORDS_IN_TIME):
        # The date of a memory answers the words of time.
        zone = zone_of(query.request.timezone)
        clause, terms = filters.during(clause, query.span.start, query.span.end, zone), words.subject or words.terms
    if wanted is CandidateList.MATCHING:
        store.queue_count(pipe, clause, past=past)
    elif wanted in _BY_WORDS:
        scorer, muted, phrase = request.text_scorer, words.muted, words.phrase
        passages, fields = wanted is CandidateList.BEST_PASSAGES_BY_WORDS, ("k", *fields)
        store.queue_words(pipe, clause, terms, depth, scorer=scorer, fields=fields, past=past, mute=muted, phrase=phrase, passages=passages)
    elif wanted is CandidateList.NEAREST_PASSAGES:
        assert query.meaning is not None
        store.queue_nearest_passages(pipe, clause, query.meaning.vector, depth)
    else:
        assert query.meaning is not None
        vector = query.meaning.vector
        if wanted is CandidateList.WITHIN_DISTANCE:
            assert request.distance_threshold is not None
            store.queue_within(pipe, clause, vector, request.distance_threshold, query.depth, fields, past=past)
        else:
            store.queue_nearest(pipe, clause, vector, depth, fields, past=past)


def parse_candidates(query: SearchQuery, replies: Sequence[Any]) -> Candidates:
    """The hits of a query's replies; those of history follow those of the rest. Raises RedisUnavailable for an incomplete answer."""
    lists = lists_of(query)
    hits = list(map(parse_hits, replies))
    if query.words.weights and query.request.text_scorer == _OWN_SCORER:
        weights, length = query.words.weights, query.words.mean_length
        hits = [rescored(each, weights, length) if each.rows and not each.distances else each for each in hits]
    if query.history is None:
        return dict(zip(lists, hits, strict=True))
    current, past = hits[: len(lists)], hits[len(lists) :]
    return {wanted: _with_history(*both) for wanted, *both in zip(lists, current, past, strict=True)}


def _with_history(current: Hits, past: Hits) -> Hits:
    """Two answers to one question as one, by distance or by score: each list has its own kind of value."""
    hits, distances = [*current.hits, *past.hits], current.distances or past.distances
    hits.sort(key=lambda hit: hit.value, reverse=not distances)
    return Hits.of(current.total + past.total, hits, distances=distances)


def times_of(candidates: Candidates, field: bytes) -> dict[str, float]:
    """The times (epoch seconds) in a field of the hits, by name, as far as they were asked for."""
    times: dict[str, float] = {}
    for hits in candidates.values():
        times |= hits.numbers(field)
    return times
