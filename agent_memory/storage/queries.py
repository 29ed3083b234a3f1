"""Searches in long-term memory as commands on a pipeline, and reading their replies."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from redis.asyncio.client import Pipeline
from redis.exceptions import ResponseError

from agent_memory.errors import RedisUnavailable
from agent_memory.storage.filters import scoring
from agent_memory.storage.indexes import VectorSpec, history_index_name, memory_index_name, vector_index_name
from agent_memory.storage.keys import Keys
from agent_memory.storage.records import PAST

# RediSearch gives no place beyond this one (MAXSEARCHRESULTS).
_MOST_RESULTS = 1_000_000
_NO_FIELDS: Mapping[bytes, bytes] = {}


class Hit(NamedTuple):
    """One document of a search answer; `value` is its distance or its score. `fields` are as Redis sent them."""

    mid: str
    value: float
    fields: Mapping[bytes, bytes]


class Hits(NamedTuple):
    """A search answer: the number of all matches, and a page of them."""

    total: int
    hits: list[Hit]


class Listed(NamedTuple):
    """One document of a list, and when (epoch seconds) it was created."""

    mid: str
    at: float


class Listings(NamedTuple):
    """A list: the number of all matches, and a part of them."""

    total: int
    rows: list[Listed]


class MemoryQueries:
    """Puts searches on a pipeline; each reply is read with `parse_hits`. With `past` they are asked of history."""

    def __init__(self, keys: Keys, spec: VectorSpec) -> None:
        self._keys = keys
        self._spec = spec
        self._words = memory_index_name(keys)
        self._vectors = vector_index_name(keys, spec)
        self._history = history_index_name(keys, spec)

    def queue_nearest(
        self, pipe: Pipeline, clause: str, vector: NDArray[np.float32], limit: int, fields: Sequence[str] = (), *, past: bool = False
    ) -> None:
        """The `limit` nearest vectors; hits carry cosine distances (0..2), nearest first, and the values of `fields`."""
        limit = min(limit, _MOST_RESULTS)
        query = f"({clause})=>[KNN {limit} @{self._spec.field} $q AS d]"
        blob = vector.astype(self._spec.numpy_type).tobytes()
        command = [
            "FT.SEARCH",
            self._history if past else self._vectors,
            query,
            "PARAMS",
            2,
            "q",
            blob,
            "RETURN",
            1 + len(fields),
            "d",
            *fields,
            "SORTBY",
            "d",
            "LIMIT",
            0,
            limit,
            "DIALECT",
            2,
        ]
        pipe.execute_command(*command)

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
        query = f"{clause} @{self._spec.field}:[VECTOR_RANGE $r $q]=>{{$YIELD_DISTANCE_AS: d}}"
        blob = vector.astype(self._spec.numpy_type).tobytes()
        index = self._history if past else self._vectors
        command = ["FT.SEARCH", index, query, "PARAMS", 4, "q", blob, "r", min(radius, 2.0)]
        command += ["RETURN", 1 + len(fields), "d", *fields, "SORTBY", "d"]
        pipe.execute_command(*command, "LIMIT", 0, min(limit, _MOST_RESULTS), "DIALECT", 2)

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
    ) -> None:
        """The best matches of any of some index terms; hits carry scores, best first. Words of `mute` match and do not score.

        With `phrase`, a clause of `filters.quoting`, only what it allows is a match.
        """
        query = scoring(clause if not phrase else f"({clause}) {phrase}", terms, mute)
        limit = min(limit, _MOST_RESULTS)
        content = ["RETURN", len(fields), *fields] if fields else ["NOCONTENT"]
        index = self._history if past else self._words
        pipe.execute_command("FT.SEARCH", index, query, *content, "WITHSCORES", "SCORER", scorer, "LIMIT", 0, limit, "DIALECT", 2)

    def queue_newest(self, pipe: Pipeline, clause: str, offset: int, limit: int, *, past: bool = False) -> None:
        """All that match, the last created first; read with `parse_listed`. A `limit` of -1 is as many as the engine gives."""
        room = max(_MOST_RESULTS - offset, 0)
        limit = room if limit < 0 else min(limit, room)
        index = self._history if past else self._words
        command = ["FT.SEARCH", index, clause, "NOCONTENT", "WITHSORTKEYS", "SORTBY", "c", "DESC", "LIMIT", offset if limit else 0, limit]
        pipe.execute_command(*command, "DIALECT", 2)

    def queue_count(self, pipe: Pipeline, clause: str, *, embedded: bool = False, past: bool = False) -> None:
        """How many match, or how many of them have their vector; hits are empty."""
        index = self._history if past else self._vectors if embedded else self._words
        pipe.execute_command("FT.SEARCH", index, clause, "LIMIT", 0, 0, "DIALECT", 2)

    def queue_matches(self, pipe: Pipeline, clause: str, mid: str) -> None:
        """Whether one memory matches: the total is 1 or 0."""
        key = self._keys.memory(mid)
        pipe.execute_command("FT.SEARCH", self._words, clause, "INKEYS", 1, key, "NOCONTENT", "LIMIT", 0, 1, "DIALECT", 2)


def parse_listed(reply: Any) -> Listings:
    """A reply of `queue_newest`. Raises RedisUnavailable as `parse_hits`."""
    found = parse_hits(reply)
    # Sort keys have all digits of the number; what RETURN answers for a sortable field is rounded.
    times = (float(row[b"sortkey"].lstrip(b"#")) for row in reply[b"results"])
    return Listings(found.total, [Listed(hit.mid, at) for hit, at in zip(found.hits, times, strict=True)])


def parse_hits(reply: Any) -> Hits:
    """A reply of FT.SEARCH. Raises RedisUnavailable rather than pass on an incomplete answer."""
    if isinstance(reply, ResponseError):
        raise RedisUnavailable(f"the search failed: {str(reply)[:120]}", retry_after=2) from reply
    warnings = reply.get(b"warning") or []
    if warnings:
        raise RedisUnavailable(f"the search is incomplete: {warnings[0].decode('utf-8', 'replace')[:120]}", retry_after=2)
    hits: list[Hit] = []
    for row in reply[b"results"]:
        # A search reads hundreds of these: only what is used is decoded.
        fields = row.get(b"extra_attributes") or _NO_FIELDS
        distance = fields.get(b"d")
        value = float(row.get(b"score") or 0.0) if distance is None else float(distance)
        key: bytes = row[b"id"]
        at = key.rindex(b":")
        name = key[at + 1 :].decode()
        hits.append(Hit(PAST + name if key.endswith(b":h", 0, at) else name, value, fields))
    return Hits(int(reply[b"total_results"]), hits)
