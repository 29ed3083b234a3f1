"""Queue the commands for candidate lists, and parse the replies."""

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
    NEAREST = auto()
    WITHIN_DISTANCE = auto()
    MATCHING = auto()
    """Counts the memories that match the filter, without listing them."""
    BEST_BY_WORDS = auto()
    # Only memories from the time that the query mentions, which other lists may rank too low.
    NEAREST_IN_TIME = auto()
    BEST_BY_WORDS_IN_TIME = auto()
    # No messages, so that chat cannot crowd out facts.
    NEAREST_FACTS = auto()
    BEST_FACTS_BY_WORDS = auto()
    """Used only in keyword searches."""
    # Passages of long memories. The other lists cover only the beginning of a memory.
    NEAREST_PASSAGES = auto()
    BEST_PASSAGES_BY_WORDS = auto()


_BY_WORDS = frozenset(
    {
        CandidateList.BEST_BY_WORDS,
        CandidateList.BEST_BY_WORDS_IN_TIME,
        CandidateList.BEST_FACTS_BY_WORDS,
        CandidateList.BEST_PASSAGES_BY_WORDS,
    }
)
_OWN_SCORER = "BM25STD"
FACTS_DEPTH = 16
"""The length of each list of facts. A prompt shows half as many."""

Candidates = Mapping[CandidateList, Hits]


def lists_of(query: SearchQuery) -> Sequence[CandidateList]:
    """Return the candidate lists that a query needs, in command order."""
    kinds = CandidateList
    if query.empty:
        return ()
    if query.meaning is None:
        return (kinds.BEST_BY_WORDS, kinds.BEST_FACTS_BY_WORDS) if query.facts_apart else (kinds.BEST_BY_WORDS,)
    if query.mode is SearchModeEnum.SEMANTIC:
        if query.request.distance_threshold is not None:
            return (kinds.WITHIN_DISTANCE,)
        return (kinds.NEAREST, kinds.MATCHING, *((kinds.NEAREST_PASSAGES,) if query.history is None else ()))
    by_words, in_time = bool(query.words.terms), query.span is not None
    passages = query.history is None and not query.words.phrase
    needed = {
        kinds.NEAREST: True,
        kinds.MATCHING: query.paged,  # Only paged results contain a total.
        kinds.BEST_BY_WORDS: by_words,
        kinds.NEAREST_PASSAGES: passages,
        kinds.BEST_PASSAGES_BY_WORDS: passages and by_words,
        kinds.NEAREST_IN_TIME: in_time,
        kinds.BEST_BY_WORDS_IN_TIME: in_time and by_words,
        # A keyword list of facts would cost more, so a fact's words count only if the main list contains the fact.
        kinds.NEAREST_FACTS: query.facts_apart,
    }
    return [kind for kind, is_needed in needed.items() if is_needed]


def queue_candidates(pipe: Pipe, store: MemoryStore, query: SearchQuery) -> int:
    """Queue a query's commands. Return the number of replies for `parse_candidates`."""
    lists = lists_of(query)
    for clause, past in query.clauses:
        for kind in lists:
            _queue_list(pipe, store, query, kind, clause, past=past)
    return len(query.clauses) * len(lists)


def _queue_list(pipe: Pipe, store: MemoryStore, query: SearchQuery, kind: CandidateList, clause: str, *, past: bool) -> None:
    request, words, fields = query.request, query.words, query.age.index_fields
    terms, depth = words.terms, query.depth
    if kind in (CandidateList.NEAREST_FACTS, CandidateList.BEST_FACTS_BY_WORDS):
        clause, depth = filters.facts(clause), FACTS_DEPTH
    if query.span is not None and kind in (CandidateList.NEAREST_IN_TIME, CandidateList.BEST_BY_WORDS_IN_TIME):
        zone = zone_of(query.request.timezone)
        clause = filters.during(clause, query.span.start, query.span.end, zone, created=not query.span.is_ahead)
        terms = words.subject or words.terms
    if kind is CandidateList.MATCHING:
        store.queue_count(pipe, clause, past=past)
    elif kind in _BY_WORDS:
        scorer, muted, phrase = request.text_scorer, words.muted, words.phrase
        passages, fields = kind is CandidateList.BEST_PASSAGES_BY_WORDS, ("k", *fields)
        store.queue_words(pipe, clause, terms, depth, scorer=scorer, fields=fields, past=past, mute=muted, phrase=phrase, passages=passages)
    elif query.meaning is not None:
        vector = query.meaning.vector
        if kind is CandidateList.NEAREST_PASSAGES:
            store.queue_nearest_passages(pipe, clause, vector, depth)
        elif request.distance_threshold is not None:
            store.queue_within(pipe, clause, vector, request.distance_threshold, depth, fields, past=past)
        else:
            store.queue_nearest(pipe, clause, vector, depth, fields, past=past)


def parse_candidates(query: SearchQuery, replies: Sequence[Any]) -> Candidates:
    """Parse the replies to a query. Raises RedisUnavailable if a reply is incomplete."""
    lists = lists_of(query)
    hits = list(map(parse_hits, replies))
    if query.words.weights and query.request.text_scorer == _OWN_SCORER:
        weights, length = query.words.weights, query.words.mean_length
        hits = [rescored(each, weights, length) if each.rows and not each.distances else each for each in hits]
    if query.history is None:
        return dict(zip(lists, hits, strict=True))
    current, past = hits[: len(lists)], hits[len(lists) :]
    return {kind: _with_history(*both) for kind, *both in zip(lists, current, past, strict=True)}


def _with_history(current: Hits, past: Hits) -> Hits:
    hits, distances = [*current.hits, *past.hits], current.distances or past.distances
    hits.sort(key=lambda hit: hit.value, reverse=not distances)
    return Hits.of(current.total + past.total, hits, distances=distances)


def times_of(candidates: Candidates, field: bytes) -> dict[str, float]:
    """Map each hit's name to the time in the given field (epoch seconds)."""
    times: dict[str, float] = {}
    for hits in candidates.values():
        times |= hits.numbers(field)
    return times
