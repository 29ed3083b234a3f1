"""Searches as commands on a pipeline, made by redisvl's queries; `results` reads their replies."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cache, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from redis.asyncio import Redis
from redis.asyncio.client import Pipeline
from redisvl.query import CountQuery, FilterQuery, VectorQuery, VectorRangeQuery
from redisvl.query.query import BaseQuery

from agent_memory.foundation.storage.connection import read
from agent_memory.foundation.storage.keyspace import Keys
from agent_memory.foundation.storage.search.indexes import (
    VectorSpec,
    history_index_name,
    memory_index_name,
    passage_index_name,
    vector_index_name,
)
from agent_memory.foundation.storage.search.results import DISTANCE, Hits, parse_hits
from agent_memory.foundation.storage.search.syntax import all_of, scoring

# RediSearch gives no hit beyond this one (MAXSEARCHRESULTS).
_MOST_RESULTS = 1_000_000
# redis-py's queries have no word for it. Sort keys have all digits of a number; what RETURN answers for a sortable field is rounded.
WITH_SORT_KEYS = "WITHSORTKEYS"


def search_command(index: str, query: BaseQuery, *options: str) -> list[Any]:
    """A query as a command; `options` are what redis-py cannot say."""
    params = [part for pair in query.params.items() for part in pair]
    return ["FT.SEARCH", index, *query.get_args(), *options, *(("PARAMS", len(params), *params) if params else ())]


# Stands for the clause in a command that redisvl has made before: to make one takes it 15 to 30 µs, and a search has four to ten.
_CLAUSE = "@clause:{}"


@lru_cache(maxsize=512)
def _words_command(scorer: str, limit: int, fields: tuple[str, ...]) -> list[Any]:
    query = FilterQuery(_CLAUSE, return_fields=list(fields) or None)
    if not fields:
        query.no_content()
    query.scorer(scorer).with_scores().paging(0, limit)
    return search_command("", query)


@lru_cache(maxsize=512)
def _nearest_command(spec: VectorSpec, limit: int) -> list[Any]:
    query = VectorQuery(
        b"", spec.field, return_fields=None, filter_expression=_CLAUSE, dtype=spec.numpy_type, num_results=limit, return_score=False
    )
    # What they are sorted by is sent beside the keys: a list of each hit's own fields would double the reply.
    query.no_content()
    return search_command("", query, WITH_SORT_KEYS)


@cache
def _count_command() -> list[Any]:
    return search_command("", CountQuery(_CLAUSE))


def _queue_made(pipe: Pipeline, index: str, made: Sequence[Any], clause: str) -> None:
    name, _, text, *options = made
    pipe.execute_command(name, index, text.replace(_CLAUSE, clause), *options)


def queue_search(pipe: Pipeline, index: str, query: BaseQuery, *options: str) -> None:
    """Puts a query on a pipeline; its reply is read with `parse_hits`."""
    pipe.execute_command(*search_command(index, query, *options))


async def search(client: Redis, index: str, query: BaseQuery) -> Hits:
    """One search. Raises RedisUnavailable, also for an answer that is not whole."""
    return parse_hits((await read(client, lambda pipe: queue_search(pipe, index, query)))[0])


def name_query(clause: str, offset: int, limit: int, *, sort_by: tuple[str, str] | None = None) -> FilterQuery:
    """The names of a page of what matches, in the order of a sortable field ("ASC" or "DESC"), if one is named."""
    query = FilterQuery(clause, sort_by=sort_by)
    query.no_content().paging(offset, limit)
    return query


def record_query(clause: str, limit: int) -> FilterQuery:
    """The first records ("j") of what matches, by when they were made."""
    query = FilterQuery(clause, return_fields=["j"], sort_by=("c", "ASC"))
    query.paging(0, limit)
    return query


class MemoryQueries:
    """Puts searches on a pipeline; each reply is read with `parse_hits`. With `past` they are asked of history."""

    def __init__(self, keys: Keys, spec: VectorSpec) -> None:
        self._keys = keys
        self._spec = spec
        self._words = memory_index_name(keys)
        self._vectors = vector_index_name(keys, spec)
        self._passages = passage_index_name(keys, spec)
        self._history = history_index_name(keys, spec)

    def queue_nearest(
        self, pipe: Pipeline, clause: str, vector: NDArray[np.float32], limit: int, fields: Sequence[str] = (), *, past: bool = False
    ) -> None:
        """The `limit` nearest vectors; hits carry cosine distances (0..2), nearest first, and the values of `fields`."""
        index, limit = self._history if past else self._vectors, min(limit, _MOST_RESULTS)
        if not fields:
            *made, _ = _nearest_command(self._spec, limit)
            _queue_made(pipe, index, [*made, self._blob(vector)], clause)
            return
        query = VectorQuery(
            self._blob(vector),
            self._spec.field,
            return_fields=[DISTANCE, *fields],
            filter_expression=clause,
            dtype=self._spec.numpy_type,
            num_results=limit,
            return_score=False,
        )
        queue_search(pipe, index, query)

    def queue_nearest_passages(self, pipe: Pipeline, clause: str, vector: NDArray[np.float32], limit: int) -> None:
        """The nearest passages of long memories ("<mid>.<n>"), with their distances and how many their memory has (`pn`)."""
        query = VectorQuery(
            self._spec.blob(vector),
            self._spec.field,
            return_fields=[DISTANCE, "pn"],
            filter_expression=clause,
            dtype=self._spec.numpy_type,
            num_results=min(limit, _MOST_RESULTS),
            return_score=False,
        )
        queue_search(pipe, self._passages, query)

    def queue_within(
        self,
        pipe: Pipeline,
        clause: str,
        vector: NDArray[np.float32],
        radius: float,
        limit: int,
        fields: Sequence[str] = (),
        *,
        past: bool = False,
    ) -> None:
        """All vectors within a cosine distance, nearest first; the answer's total counts them all."""
        query = VectorRangeQuery(
            self._blob(vector),
            self._spec.field,
            return_fields=[DISTANCE, *fields],
            filter_expression=clause,
            dtype=self._spec.numpy_type,
            distance_threshold=min(radius, 2.0),
            num_results=min(limit, _MOST_RESULTS),
            return_score=False,
        )
        queue_search(pipe, self._history if past else self._vectors, query)

    def queue_words(
        self,
        pipe: Pipeline,
        clause: str,
        terms: Sequence[str],
        limit: int,
        *,
        scorer: str = "BM25STD",
        fields: Sequence[str] = (),
        past: bool = False,
        mute: Collection[str] = (),
        phrase: str = "",
        passages: bool = False,
    ) -> None:
        """The best matches of any of some index terms; hits carry scores, best first. Words of `mute` match and do not score.

        With `phrase`, a clause of `syntax.quoting`, only what it allows is a match; with `passages` those of long memories are asked.
        """
        text = scoring(all_of(f"({clause})", phrase) if phrase else clause, terms, mute)
        made = _words_command(scorer, min(limit, _MOST_RESULTS), tuple(fields))
        _queue_made(pipe, self._passages if passages else self._history if past else self._words, made, text)

    def queue_sample(self, pipe: Pipeline, clause: str, limit: int) -> None:
        """The terms (`k`) of the newest memories that match."""
        query = FilterQuery(clause, return_fields=["k"], sort_by=("c", "DESC"))
        query.paging(0, limit)
        queue_search(pipe, self._words, query)

    def queue_newest(self, pipe: Pipeline, clause: str, offset: int, limit: int, *, past: bool = False) -> None:
        """All that match, the last created first; read with `parse_listed`. A `limit` of -1 is as many as the engine gives."""
        room = max(_MOST_RESULTS - offset, 0)
        limit = room if limit < 0 else min(limit, room)
        query = name_query(clause, offset if limit else 0, limit, sort_by=("c", "DESC"))
        queue_search(pipe, self._history if past else self._words, query, WITH_SORT_KEYS)

    def queue_count(self, pipe: Pipeline, clause: str, *, embedded: bool = False, past: bool = False) -> None:
        """How many match, or how many of them have their vector; hits are empty."""
        index = self._history if past else self._vectors if embedded else self._words
        _queue_made(pipe, index, _count_command(), clause)

    def queue_said(self, pipe: Pipeline, mids: Sequence[str]) -> None:
        """When (epoch seconds) each of these memories was made and, if it was said again, last said, in one reply each."""
        for mid in mids:
            pipe.hmget(self._keys.memory(mid), "c", "ls")

    def queue_matches(self, pipe: Pipeline, clause: str, mid: str) -> None:
        """Whether one memory matches: the total is 1 or 0."""
        query = name_query(clause, 0, 1)
        query.limit_ids(self._keys.memory(mid))
        queue_search(pipe, self._words, query)

    def _blob(self, vector: NDArray[np.float32]) -> bytes:
        return vector.astype(self._spec.numpy_type, copy=False).tobytes()
