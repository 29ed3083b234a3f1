"""Looking at many memories: all that match, page by page in a bounded memory, their counts, groups, repeats and vectors."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from redis.asyncio import Redis

from agent_memory.errors import RedisUnavailable
from agent_memory.scope import Scope
from agent_memory.storage import filters
from agent_memory.storage.codec import decode_memory
from agent_memory.storage.connection import Pipe, read
from agent_memory.storage.indexes import VectorSpec, memory_index_name, vector_index_name
from agent_memory.storage.keys import Keys, tag, untag
from agent_memory.storage.memories import parse_hits
from agent_memory.storage.reach import within
from agent_memory.storage.records import Found
from agent_memory.storage.usage import queue_usage, with_usage
from agent_memory_client.models import (
    CreatedAt,
    Entities,
    EventDate,
    ExtractionStrategy,
    LastAccessed,
    MemoryType,
    Namespace,
    SessionId,
    Topics,
    UserId,
)

_PAGE = 1000
_GROUP_FIELDS = {"namespace": "ns", "user_id": "u", "session_id": "s", "memory_type": "ty"}
# More terms than that do not make a look-up of repeats any more exact, only slower.
_TWIN_TERMS = 16


@dataclass(frozen=True, slots=True)
class Selection:
    """Which memories are meant: the contract's filters, all of which must hold. Empty: all of the caller's."""

    session_id: SessionId | None = None
    user_id: UserId | None = None
    namespace: Namespace | None = None
    topics: Topics | None = None
    entities: Entities | None = None
    memory_type: MemoryType | None = None
    extraction_strategy: ExtractionStrategy | None = None
    created_at: CreatedAt | None = None
    last_accessed: LastAccessed | None = None
    event_date: EventDate | None = None

    @classmethod
    def of(cls, namespace: str | None, user_id: str | None, session_id: str | None = None) -> Selection:
        """Everything of a namespace, a user, a session, where given."""
        return cls(
            namespace=None if namespace is None else Namespace(eq=namespace),
            user_id=None if user_id is None else UserId(eq=user_id),
            session_id=None if session_id is None else SessionId(eq=session_id),
        )


@dataclass(frozen=True, slots=True)
class Near:
    """A memory within a distance (0..2) of another."""

    mid: str
    distance: float


class Survey:
    """Reads of many memories at once, for background work and summaries. Nothing here writes."""

    def __init__(self, client: Redis, keys: Keys, spec: VectorSpec) -> None:
        self._client = client
        self._keys = keys
        self._spec = spec
        self._words = memory_index_name(keys)
        self._vectors = vector_index_name(keys, spec)

    async def now(self) -> int:
        """Redis' time in µs: the clock of all versions."""
        seconds, micros = (await read(self._client, lambda pipe: pipe.time()))[0]
        return seconds * 1_000_000 + micros

    async def tenants(self) -> list[str]:
        """Everyone who has memories."""
        found = (await read(self._client, lambda pipe: pipe.execute_command("FT.TAGVALS", self._words, "t")))[0]
        return sorted(untag(value.decode()) for value in found)

    async def count(self, scope: Scope, selection: Selection) -> int:
        """How many memories are meant."""
        command = ["FT.SEARCH", self._words, filters.where(scope, selection), "LIMIT", 0, 0, "DIALECT", 2]
        return parse_hits((await read(self._client, lambda pipe: pipe.execute_command(*command)))[0]).total

    async def walk(
        self, scope: Scope, selection: Selection, *, by: Literal["created", "changed"] = "created", since: int | None = None
    ) -> AsyncIterator[list[Found]]:
        """All memories that are meant, the oldest created or (`by="changed"`, from `since` µs on) changed first, in pages.

        What is deleted between two pages takes no other's turn, and what is changed meanwhile by order of change comes once more at the
        end. Only a page is held, and the names of those that share its last instant.
        """
        clause = filters.where(scope, selection)
        field, place = ("c", _created) if by == "created" else ("n", _changed)
        low: float | int | None = since
        tied: set[str] = set()
        while True:
            text = clause if low is None else f"{clause} @{field}:[{low!r} +inf]"
            # Those that share the last instant come again, so the page grows with them; twice, so that many of them cost no square.
            most = _PAGE + 2 * len(tied)
            command = ["FT.SEARCH", self._words, text, "NOCONTENT", "SORTBY", field, "ASC", "LIMIT", 0, most, "DIALECT", 2]
            hits = parse_hits((await read(self._client, lambda pipe, c=command: pipe.execute_command(*c)))[0]).hits
            fresh = [hit.mid for hit in hits if hit.mid not in tied]
            gone = set(fresh)
            for start in range(0, len(fresh), _PAGE):
                found = await self.load(scope, fresh[start : start + _PAGE])
                for one in found:
                    at = place(one)
                    if at != low:
                        tied.clear()
                        low = at
                    tied.add(one.mid)
                gone.difference_update(one.mid for one in found)
                if found:
                    yield found
            if len(hits) < most:
                return
            if len(gone) == len(fresh):
                tied |= gone  # The index still names what is gone: look beyond it.

    async def load(self, scope: Scope, mids: Sequence[str]) -> list[Found]:
        """Those of the memories that are there and the caller's, in the same order."""
        if not mids:
            return []

        def build(pipe: Pipe) -> None:
            for mid in mids:
                pipe.hmget(self._keys.memory(mid), ["t", "j", "n"])
            queue_usage(pipe, self._keys, mids)

        mine = tag(scope.tenant).encode()
        *rows, usage = await read(self._client, build)
        found = [
            Found(mid, int(version), with_usage(decode_memory(raw), used))
            for mid, (owner, raw, version), used in zip(mids, rows, usage, strict=True)
            if owner == mine and raw and version
        ]
        return [one for one in found if within(scope, one.record)]

    async def newest(self, scope: Scope, selection: Selection, limit: int) -> tuple[int, list[Found]]:
        """How many memories are meant, and the `limit` newest of them, newest first."""
        command: list[Any] = ["FT.SEARCH", self._words, filters.where(scope, selection), "NOCONTENT", "SORTBY", "c", "DESC"]
        command += ["LIMIT", 0, limit, "DIALECT", 2]
        hits = parse_hits((await read(self._client, lambda pipe: pipe.execute_command(*command)))[0])
        return hits.total, await self.load(scope, [hit.mid for hit in hits.hits])

    async def groups(self, scope: Scope, selection: Selection, fields: Sequence[str], limit: int) -> list[dict[str, str]]:
        """The different values of some fields (namespace, user_id, session_id, memory_type) together, the most frequent first.

        Memories that lack one of the fields belong to no group. At most `limit` groups.
        """
        names = [_GROUP_FIELDS[field] for field in fields]
        spelled = [f"@{name}" for name in names]
        command: list[Any] = ["FT.AGGREGATE", self._words, filters.where(scope, selection), "LOAD", len(spelled), *spelled]
        command += ["GROUPBY", len(spelled), *spelled, "REDUCE", "COUNT", 0, "AS", "size", "SORTBY", 2, "@size", "DESC", "MAX", limit]
        command += ["LIMIT", 0, limit, "DIALECT", 2]
        reply = (await read(self._client, lambda pipe: pipe.execute_command(*command)))[0]
        if reply.get(b"warning"):
            raise RedisUnavailable(f"the grouping is incomplete: {str(reply[b'warning'][0])[:120]}", retry_after=2)
        rows = [{name.decode(): value for name, value in row[b"extra_attributes"].items() if value} for row in reply[b"results"]]
        found: dict[tuple[str, ...], None] = {}
        for row in rows:
            if all(name in row for name in names):
                # A memory that was said in several sessions belongs to each.
                found.update(dict.fromkeys(product(*(row[name].decode().split(",") for name in names))))
        return [{field: untag(value) for field, value in zip(fields, values, strict=True)} for values in list(found)[:limit]]

    async def twins(self, scope: Scope, asked: Sequence[tuple[Selection, Sequence[str]]], limit: int) -> list[list[str]]:
        """For each selection and index terms: the names of up to `limit` memories that have all of (the first of) these terms."""

        def build(pipe: Pipe) -> None:
            for selection, terms in asked:
                query = filters.having(filters.where(scope, selection), list(dict.fromkeys(terms))[:_TWIN_TERMS], every=True)
                pipe.execute_command("FT.SEARCH", self._words, query, "NOCONTENT", "LIMIT", 0, limit, "DIALECT", 2)

        replies = await read(self._client, build) if asked else []
        return [[hit.mid for hit in parse_hits(reply).hits] for reply in replies]

    async def near(
        self, scope: Scope, asked: Sequence[tuple[Selection, NDArray[np.float32]]], radius: float, limit: int
    ) -> list[list[Near]]:
        """For each selection and vector: up to `limit` memories within a cosine distance, nearest first."""

        def build(pipe: Pipe) -> None:
            for selection, vector in asked:
                where = filters.where(scope, selection)
                query = f"{where} @{self._spec.field}:[VECTOR_RANGE $r $q]=>{{$YIELD_DISTANCE_AS: d}}"
                blob = vector.astype(self._spec.numpy_type).tobytes()
                command = ["FT.SEARCH", self._vectors, query, "PARAMS", 4, "q", blob, "r", radius, "RETURN", 1, "d", "SORTBY", "d"]
                pipe.execute_command(*command, "LIMIT", 0, limit, "DIALECT", 2)

        replies = await read(self._client, build) if asked else []
        return [[Near(hit.mid, hit.value) for hit in parse_hits(reply).hits] for reply in replies]

    async def vectors(self, mids: Sequence[str]) -> Mapping[str, NDArray[np.float32]]:
        """The stored vectors of these memories, by name; those that are not embedded yet are left out."""
        if not mids:
            return {}

        def build(pipe: Pipe) -> None:
            for mid in mids:
                pipe.hget(self._keys.vector(mid), self._spec.field)

        raw = zip(mids, await read(self._client, build), strict=True)
        return {mid: np.frombuffer(blob, dtype=self._spec.numpy_type).astype(np.float32) for mid, blob in raw if blob is not None}


def _created(found: Found) -> float:
    return found.record.created_at.timestamp()


def _changed(found: Found) -> int:
    return found.version
