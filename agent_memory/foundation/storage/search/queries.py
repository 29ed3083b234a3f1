"""Build search commands with redisvl and queue them on a pipeline."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cache, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from redis.asyncio import Redis
from redis.asyncio.client import Pipeline
from redisvl.query import CountQuery, FilterQuery, VectorQuery
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

# RediSearch returns at most this many hits (MAXSEARCHRESULTS).
_MOST_RESULTS = 1_000_000
# redis-py's queries lack this option. Sort keys have all of a number's digits, but RETURN rounds sortable fields.
WITH_SORT_KEYS = "WITHSORTKEYS"


def search_command(index: str, query: BaseQuery, *options: str) -> list[Any]:
    """Return the command for a query, including options that redis-py does not support."""
    params = [part for pair in query.params.items() for part in pair]
    return ["FT.SEARCH", index, *query.get_args(), *options, *(("PARAMS", len(params), *params) if params else ())]


# A placeholder for the clause in cached commands. redisvl takes 15 to 30 µs to build a command, and a search
# needs four to ten.
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
    # The sort key is the distance. A list of fields for each hit would double the size of the reply.
    query.no_content()
    return search_command("", query, WITH_SORT_KEYS)


@cache
def _count_command() -> list[Any]:
    return search_command("", CountQuery(_CLAUSE))


def _queue_made(pipe: Pipeline, index: str, made: Sequence[Any], clause: str) -> None:
    name, _, text, *options = made
    pipe.execute_command(name, index, text.replace(_CLAUSE, clause), *options)


def queue_search(pipe: Pipeline, index: str, query: BaseQuery, *options: str) -> None:
    """Queue a query on a pipeline. `parse_hits` parses the reply."""
    pipe.execute_command(*search_command(index, query, *options))


async def search(client: Redis, index: str, query: BaseQuery) -> Hits:
    """Run one search. Raises RedisUnavailable if the reply is incomplete."""
    return parse_hits((await read(client, lambda pipe: queue_search(pipe, index, query)))[0])


def name_query(clause: str, offset: int, limit: int, *, sort_by: tuple[str, str] | None = None) -> FilterQuery:
    """Return a query for one page of names, sorted by (field, "ASC" or "DESC")."""
    query = FilterQuery(clause, sort_by=sort_by)
    query.no_content().paging(offset, limit)
    return query


def record_query(clause: str, limit: int) -> FilterQuery:
    """Return a query for the oldest matches as stored JSON."""
    query = FilterQuery(clause, return_fields=["j"], sort_by=("c", "ASC"))
    query.paging(0, limit)
    return query


class MemoryQueries:
    """Queues memory searches on a pipeline. Parse the replies with `parse_hits`.

    If `past` is true, searches use the history instead.
    """

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
        """Queue a search for the nearest vectors. Hits include cosine distances (0 to 2)."""
        index, limit = self._history if past else self._vectors, min(limit, _MOST_RESULTS)
        if not fields:
            *made, _ = _nearest_command(self._spec, limit)
            _queue_made(pipe, index, [*made, self._blob(vector)], clause)
            return
        queue_search(pipe, index, self._vector_query(clause, vector, limit, fields))

    def queue_nearest_passages(self, pipe: Pipeline, clause: str, vector: NDArray[np.float32], limit: int) -> None:
        """Queue a search for the nearest passages, named "<mid>.<n>".

        Hits include distances and `pn`, the number of passages in the memory.
        """
        queue_search(pipe, self._passages, self._vector_query(clause, vector, min(limit, _MOST_RESULTS), ["pn"]))

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
        """Queue a search for vectors within a cosine distance, nearest first.

        `Hits.total` includes hits beyond `limit`.
        """
        # A range query of RediSearch loses the distances if the clause negates several conditions. A KNN query over the
        # range keeps them.
        within = all_of(clause, f"@{self._spec.field}:[VECTOR_RANGE {min(radius, 2.0)} $vector]")
        query = self._vector_query(within, vector, _MOST_RESULTS, fields, hybrid_policy="ADHOC_BF")
        query.paging(0, min(limit, _MOST_RESULTS))
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
        """Queue a search for memories that contain any of `terms`, best first.

        Terms in `mute` do not affect the score. `phrase` (from `syntax.quoting`) restricts the
        matches. With `passages`, search passages instead of memories.
        """
        text = scoring(all_of(f"({clause})", phrase) if phrase else clause, terms, mute)
        made = _words_command(scorer, min(limit, _MOST_RESULTS), tuple(fields))
        _queue_made(pipe, self._passages if passages else self._history if past else self._words, made, text)

    def queue_sample(self, pipe: Pipeline, clause: str, limit: int) -> None:
        """Queue a search for the terms (field `k`) of the newest matches."""
        query = FilterQuery(clause, return_fields=["k"], sort_by=("c", "DESC"))
        query.paging(0, limit)
        queue_search(pipe, self._words, query)

    def queue_newest(self, pipe: Pipeline, clause: str, offset: int, limit: int, *, past: bool = False) -> None:
        """Queue a search for the newest matches (see `parse_listed`). If `limit` is -1, get all."""
        room = max(_MOST_RESULTS - offset, 0)
        limit = room if limit < 0 else min(limit, room)
        query = name_query(clause, offset if limit else 0, limit, sort_by=("c", "DESC"))
        queue_search(pipe, self._history if past else self._words, query, WITH_SORT_KEYS)

    def queue_count(self, pipe: Pipeline, clause: str, *, embedded: bool = False, past: bool = False) -> None:
        """Queue a count of the matches. With `embedded`, count only memories with vectors."""
        index = self._history if past else self._vectors if embedded else self._words
        _queue_made(pipe, index, _count_command(), clause)

    def queue_times(self, pipe: Pipeline, mids: Sequence[str]) -> None:
        """Queue reads of when each memory was created and last stated (seconds since 1970)."""
        for mid in mids:
            pipe.hmget(self._keys.memory(mid), "c", "ls")

    def queue_matches(self, pipe: Pipeline, clause: str, mid: str) -> None:
        """Queue a check of whether a memory matches. The reply's total is 1 or 0."""
        query = name_query(clause, 0, 1)
        query.limit_ids(self._keys.memory(mid))
        queue_search(pipe, self._words, query)

    def _vector_query(
        self, clause: str, vector: NDArray[np.float32], limit: int, fields: Sequence[str], *, hybrid_policy: str | None = None
    ) -> VectorQuery:
        return VectorQuery(
            self._blob(vector),
            self._spec.field,
            return_fields=[DISTANCE, *fields],
            filter_expression=clause,
            dtype=self._spec.numpy_type,
            num_results=limit,
            return_score=False,
            hybrid_policy=hybrid_policy,
        )

    def _blob(self, vector: NDArray[np.float32]) -> bytes:
        return vector.astype(self._spec.numpy_type, copy=False).tobytes()
