"""Read erasure orders and the memories they cover, and write receipts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from redis.asyncio import Redis

from agent_memory.features.jobs.erasure_orders import Erasure
from agent_memory.features.memories.records import decode_memory, decode_rows
from agent_memory.foundation.core.scope import Scope
from agent_memory.foundation.storage.connection import read
from agent_memory.foundation.storage.keyspace import Keys, tag
from agent_memory.foundation.storage.scripts import Script
from agent_memory.foundation.storage.search import filters
from agent_memory.foundation.storage.search.indexes import VectorSpec, history_index_name, memory_index_name
from agent_memory.foundation.storage.search.queries import name_query, search
from agent_memory.foundation.storage.search.results import PAST
from agent_memory.foundation.storage.search.syntax import all_of
from agent_memory_client.models import MemoryRecord

_PAGE = 100
_RECEIPT_SECONDS = 30 * 24 * 3600
# For this long after an erasure, Redis refuses writes from work that began before the erasure ended.
_REMEMBERED_SECONDS = 2 * 3600


@dataclass(frozen=True, slots=True)
class ErasureOrder:
    """An erasure order. `raw` is its stored JSON, which is unique to the order."""

    name: str
    erasure: Erasure
    raw: bytes


@dataclass(frozen=True, slots=True)
class ErasedMemory:
    """A memory or version covered by an order. `record` is None if it is unreadable."""

    name: str
    record: MemoryRecord | None
    version: int


class ErasureStore:
    def __init__(self, client: Redis, keys: Keys, spec: VectorSpec) -> None:
        self._client = client
        self._keys = keys
        self._words = memory_index_name(keys)
        self._history = history_index_name(keys, spec)
        self._finish = Script(client, "privacy/erasure_finish")

    async def load(self, name: str) -> ErasureOrder | None:
        """Return an open order, or None if it is missing or finished."""
        raw: bytes | None = (await read(self._client, lambda pipe: pipe.get(self._keys.erasure(name))))[0]
        body = {} if raw is None else json.loads(raw)
        if raw is None or "done" in body:
            return None
        return ErasureOrder(name, Erasure(body["tn"], body["ns"], body["us"], body["sid"], body.get("ag")), raw)

    async def is_open(self, order: ErasureOrder) -> bool:
        """True if an order is still open. Check this after reading the covered memories."""
        return (await read(self._client, lambda pipe: pipe.get(self._keys.erasure(order.name))))[0] == order.raw

    async def leave_receipt(self, order: ErasureOrder, counts: Mapping[str, int], note: str | None = None) -> None:
        """Replace a finished order with a receipt that omits the owner. Idempotent."""
        ordered, ends = json.loads(order.raw), {"end": datetime.now(UTC).isoformat()}
        about = {name: ordered[name] for name in ("by", "at") if ordered.get(name)} | ends | ({} if note is None else {"note": note})
        receipt = json.dumps({"tn": order.erasure.tenant, "done": dict(counts)} | about)
        name = self._keys.erasure(order.name)
        await self._finish(
            order=name,
            receipts=self._keys.erasure_receipts(tag(order.erasure.tenant)),
            name=order.name,
            root=self._keys.root,
            place=order.erasure.place,
            remembered_seconds=_REMEMBERED_SECONDS,
            carried_out=order.raw,
            receipt=receipt,
            ttl_seconds=_RECEIPT_SECONDS,
        )

    async def page(self, scope: Scope, erasure: Erasure, *, past: bool = False) -> Sequence[ErasedMemory]:
        """Return a page of covered memories, or an empty page if none are left.

        If `past` is true, return ended memories and former versions instead.
        """
        clause = erased_where(scope, erasure)
        index, key_of = (self._history, self._keys.history) if past else (self._words, self._keys.memory)
        offset = 0
        while True:
            hits = await search(self._client, index, name_query(clause, offset, _PAGE))
            names = [hit.mid.removeprefix(PAST) for hit in hits.hits]
            rows = await read(self._client, lambda pipe, names=names: [pipe.hmget(key_of(name), OWNER_FIELDS) for name in names])
            matching = await decode_rows(lambda names=names, rows=rows: _covered_rows(scope, erasure, names, rows), rows)
            offset += _PAGE
            if matching or offset >= hits.total:
                return matching


OWNER_FIELDS = ("t", "j", "n", "ns", "u", "s", "ag")


def _covered_rows(scope: Scope, erasure: Erasure, names: Sequence[str], rows: Sequence[Sequence[bytes | None]]) -> list[ErasedMemory]:
    tenant_tag = tag(scope.tenant).encode()
    matching: list[ErasedMemory] = []
    for name, (owner, raw, version, *tags) in zip(names, rows, strict=True):
        record = _readable(raw)
        if owner == tenant_tag and (_has_tags(erasure, tags) if record is None else is_covered(erasure, record)):
            matching.append(ErasedMemory(name, record, int(version or 0)))
    return matching


def _readable(raw: bytes | None) -> MemoryRecord | None:
    try:
        return None if raw is None else decode_memory(raw)
    except ValueError:
        return None


def _has_tags(erasure: Erasure, tags: Sequence[bytes | None]) -> bool:
    namespace, user, sessions, agent = ("" if value is None else value.decode() for value in tags)
    namespace_tag = "" if erasure.namespace is None else tag(erasure.namespace)
    if erasure.agent_id is not None:
        return agent == tag(erasure.agent_id) and (erasure.namespace is None or namespace == namespace_tag)
    if erasure.session_id is None:
        return user == tag(erasure.user_id or "") and (erasure.namespace is None or namespace == namespace_tag)
    return (namespace, user) == (namespace_tag, tag(erasure.user_id or "")) and tag(erasure.session_id) in sessions.split(",")


def erased_where(scope: Scope, erasure: Erasure) -> str:
    """Return a search query for the memories in the caller's scope that the erasure covers."""
    values = (("ns", erasure.namespace), ("u", erasure.user_id), ("s", erasure.session_id), ("ag", erasure.agent_id))
    return all_of(filters.where(scope), *(filters.is_value(field, value) for field, value in values if value is not None))


def is_covered(erasure: Erasure, record: MemoryRecord) -> bool:
    if erasure.agent_id is not None:
        return record.agent_id == erasure.agent_id and erasure.namespace in (None, record.namespace)
    if erasure.session_id is None:
        return record.user_id == erasure.user_id and erasure.namespace in (None, record.namespace)
    return (record.session_id, record.namespace, record.user_id) == (erasure.session_id, erasure.namespace, erasure.user_id)
