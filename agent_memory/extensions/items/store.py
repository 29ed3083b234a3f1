"""Store items in Redis. Reads always reflect earlier writes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from redis.asyncio import Redis

from agent_memory.extensions.items.search_index import ItemKeys
from agent_memory.extensions.items.texts import item_terms, item_text
from agent_memory.foundation.core.clock import from_micros
from agent_memory.foundation.core.permissions import access_denied, denied_field
from agent_memory.foundation.core.scope import Scope
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.foundation.llm.threads import run_in_thread
from agent_memory.foundation.storage.connection import read, redis_errors
from agent_memory.foundation.storage.erasures import guard_of
from agent_memory.foundation.storage.keyspace import Keys, digest, tag, untag
from agent_memory.foundation.storage.scripts import Script, compact
from agent_memory.foundation.storage.search.indexes import VectorSpec
from agent_memory_client.models import DeleteItem, Item, PutItem

PAGE = 500
items_read: ContextVar[list[int] | None] = ContextVar("agent_memory.items_read", default=None)
"""The counts of items and paths read in the running batch."""
# Decoding an item takes as much time as processing its value plus this many characters of text.
_ITEM_CHARS = 100
_FIELDS = ("v", "pa", "ky", "ca", "ua", "em", "k", "tl", "ix")


class ItemOwner(NamedTuple):
    namespace: str | None
    user_id: str | None


@dataclass(frozen=True, slots=True)
class StoredItem:
    """A stored item. `entry` is its member in the owner's sorted set.

    `indexed` is False for items that are never embedded. `vector` is None if missing or not
    requested.
    """

    entry: str
    item: Item
    terms: frozenset[str]
    ttl_ms: int | None
    index: list[str] | bool | None
    indexed: bool
    vector: NDArray[np.float32] | None

    @property
    def iid(self) -> str:
        return self.entry[-32:]


class ItemTimes(NamedTuple):
    """Timestamps for an imported item."""

    created: datetime | None = None
    updated: datetime | None = None
    ends: datetime | None = None
    imported: str | None = None


_NOW = ItemTimes()


class EmbedJob(NamedTuple):
    """An item that needs a vector. `fence` identifies the value that `text` comes from."""

    iid: str
    tenant: str
    fence: bytes
    text: str


def owner_digest(scope: Scope, owner: ItemOwner) -> str:
    """Return an owner's digest for Redis keys. Raises Forbidden."""
    if not scope.reaches(owner.namespace, owner.user_id):
        raise access_denied("these items", denied_field(scope, owner))
    return digest("items", scope.tenant, owner.namespace, owner.user_id)


def path_tag(owner: str, labels: Sequence[str]) -> str:
    """Return the index tag for an owner's items under a path."""
    return digest("path", owner, *labels)


def _entry(owner: str, path: Sequence[str], key: str) -> str:
    return f"{'.'.join(map(tag, path))}!{tag(key)}!{digest('item', owner, key, *path)}"


def _note_read(count: int) -> None:
    if (counts := items_read.get()) is not None:
        counts.append(count)


def _millis(moment: datetime | None) -> str | None:
    return None if moment is None else str(round(moment.timestamp() * 1_000))


def _range(prefix: Sequence[str]) -> tuple[str, str]:
    """Return the lexical range that covers all entries under a path.

    In an entry, the path is followed by "!" or ".". The next ASCII character after "." is "/".
    """
    start = ".".join(map(tag, prefix))
    return (f"[{start}!", f"({start}/") if prefix else ("-", "+")


class ItemStore:
    def __init__(self, client: Redis, keys: Keys, spec: VectorSpec) -> None:
        self._client = client
        self._keys = keys
        self._item_keys = ItemKeys(keys.root)
        self._spec = spec
        self._write = Script(client, "items/item_write")
        self._list = Script(client, "items/item_list")
        self._paths = Script(client, "items/item_paths")
        self._refresh = Script(client, "items/item_refresh")
        self._erase = Script(client, "items/item_erase")
        self._undo = Script(client, "items/item_undo")
        self._embed = Script(client, "items/item_embed")

    async def write_items(self, scope: Scope, owner: ItemOwner, changes: Sequence[PutItem | DeleteItem], times: ItemTimes = _NOW) -> None:
        """Put and delete items atomically. The last change to a key wins. Raises Forbidden."""
        name = owner_digest(scope, owner)
        last = {_entry(name, change.path, change.key): change for change in changes}
        # Always use a thread, because only encoding the values shows how long it takes.
        values = await asyncio.to_thread(lambda: [part for entry, change in last.items() for part in _change(name, entry, change)])
        await self._write(
            **self._item_keys.of(scope.tenant, name),
            due=self._keys.due(DueKind.ITEM),
            wake=self._keys.wake,
            tenant=tag(scope.tenant),
            about=compact(owner),
            created_at=_millis(times.created),
            updated_at=_millis(times.updated),
            ends_at=_millis(times.ends),
            imported=times.imported,
            guard=guard_of(self._keys.root, scope.tenant, owner.namespace, owner.user_id),
            changes=values,
        )

    async def load_item(self, scope: Scope, owner: ItemOwner, path: Sequence[str], key: str) -> StoredItem | None:
        """Return an item, or None if it is missing. Raises Forbidden."""
        entry = _entry(owner_digest(scope, owner), path, key)
        return (await self.load_entries(scope, owner, [entry[-32:]]))[0]

    async def load_entries(self, scope: Scope, owner: ItemOwner, iids: Sequence[str], *, vectors: bool = False) -> list[StoredItem | None]:
        """Return the items in order. Raises Forbidden.

        Return None for an item that is missing or has another owner.
        """
        name, fields = owner_digest(scope, owner), self._fields(vectors=vectors)

        def build(pipe: Any) -> None:
            for iid in iids:
                pipe.hmget(self._keys.item(iid), fields)

        stored = await self._decoded(await read(self._client, build)) if iids else []
        own_entries = [_entry(name, item.item.path, item.item.key) if item is not None else "" for item in stored]
        return [
            None if item is None or entry[-32:] != iid else replace(item, entry=entry)
            for item, entry, iid in zip(stored, own_entries, iids, strict=True)
        ]

    async def list_items(self, scope: Scope, owner: ItemOwner, prefix: Sequence[str], offset: int, limit: int) -> list[StoredItem]:
        """Return a page of items, sorted by path and key. Raises Forbidden."""
        return await self._page(scope, owner, *_range(prefix), offset, limit)

    async def scan_items(
        self, scope: Scope, owner: ItemOwner, prefix: Sequence[str], *, vectors: bool = False
    ) -> AsyncGenerator[StoredItem]:
        """Yield all items under a path, sorted by path and key. Raises Forbidden."""
        low, high = _range(prefix)
        while page := await self._page(scope, owner, low, high, 0, PAGE, vectors=vectors):
            for item in page:
                yield item
            low = f"({page[-1].entry}"

    async def load_end(self, scope: Scope, owner: ItemOwner, item: StoredItem) -> datetime | None:
        """Return when an item expires, or None if it has no TTL. Raises Forbidden."""
        if item.ttl_ms is None:
            return None
        (end,) = await read(self._client, lambda pipe: pipe.zscore(self._item_keys.expiries(owner_digest(scope, owner)), item.entry))
        return None if end is None else datetime.fromtimestamp(float(end) / 1000, UTC)

    async def list_paths(self, scope: Scope, owner: ItemOwner) -> list[list[str]]:
        """Return every path that contains items. Raises Forbidden."""
        reply = await self._paths(**self._item_keys.of(scope.tenant, owner_digest(scope, owner)))
        _note_read(len(reply))
        return await run_in_thread(lambda: [[untag(label) for label in path.decode().split(".")] for path in reply], sum(map(len, reply)))

    async def refresh_items(self, scope: Scope, owner: ItemOwner, items: Sequence[StoredItem]) -> None:
        """Restart the items' TTLs. Skip items that have no TTL. Raises Forbidden."""
        entries = [item.entry for item in items if item.ttl_ms is not None]
        if entries:
            expiries = self._item_keys.expiries(owner_digest(scope, owner))
            await self._refresh(expiries=expiries, root=self._keys.root, members=entries)

    async def load_owners(self, scope: Scope) -> list[ItemOwner]:
        key = self._item_keys.owners(scope.tenant)
        owners = [ItemOwner(*json.loads(raw)) for raw in (await read(self._client, lambda pipe: pipe.hvals(key)))[0]]
        return [owner for owner in owners if scope.reaches(owner.namespace, owner.user_id)]

    async def erase_items(self, scope: Scope, owner: ItemOwner) -> int:
        """Delete the owner's items and return the count. Raises Forbidden."""
        keys = self._item_keys.of(scope.tenant, owner_digest(scope, owner))
        count = 0
        while erased := int(await self._erase(**keys)):
            count += erased
        return count

    async def undo_import(self, scope: Scope, owner: ItemOwner, imported: str, *, dry_run: bool) -> int:
        """Delete imported items that have not been replaced, and return the count.

        A dry run only counts. Raises Forbidden.
        """
        keys, count = self._item_keys.of(scope.tenant, owner_digest(scope, owner)), 0
        entries = [stored.entry async for stored in self.scan_items(scope, owner, [])]
        for start in range(0, len(entries), PAGE):
            count += int(await self._undo(**keys, imported=imported, dry=dry_run, members=entries[start : start + PAGE]))
        return count

    async def embed_jobs(self, iids: Sequence[str]) -> list[EmbedJob]:
        """Return a job for each item that still needs a vector."""

        def build(pipe: Any) -> None:
            for iid in iids:
                pipe.hmget(self._keys.item(iid), ["t", "n", "v", "ix", "em"])

        jobs: list[EmbedJob] = []
        for iid, (tenant, fence, value, index, model) in zip(iids, await read(self._client, build), strict=True):
            if value is not None and not {"x", self._spec.digest} & set(model.decode().split(",")):
                jobs.append(EmbedJob(iid, untag(tenant.decode()), fence, item_text(json.loads(value), json.loads(index))))
        return jobs

    async def store_vectors(self, jobs: Sequence[EmbedJob], vectors: Iterable[NDArray[np.float32] | None]) -> int:
        """Store the vectors of unchanged items and return the count.

        If a vector is None, only record the embedding attempt.
        """
        same = {"field": self._spec.field, "model": self._spec.digest}
        blobs = [None if vector is None else self.blob(vector) for vector in vectors]
        replies = await self._embed.each(
            [{**same, "item": self._keys.item(job.iid), "fence": job.fence, "vector": blob} for job, blob in zip(jobs, blobs, strict=True)]
        )
        if error := next((reply for reply in replies if isinstance(reply, Exception)), None):
            raise error
        return sum(map(int, replies))

    async def mark_unembedded(self, iids: Sequence[str]) -> None:
        with redis_errors():
            await self._client.zadd(self._keys.due(DueKind.ITEM), dict.fromkeys(iids, 0.0), nx=True)

    def blob(self, vector: NDArray[np.float32]) -> bytes:
        return vector.astype(self._spec.numpy_type).tobytes()

    async def _page(
        self, scope: Scope, owner: ItemOwner, low: str, high: str, offset: int, limit: int, *, vectors: bool = False
    ) -> list[StoredItem]:
        keys = self._item_keys.of(scope.tenant, owner_digest(scope, owner))
        rows = await self._list(**keys, low=low, high=high, offset=offset, limit=limit, fields=self._fields(vectors=vectors))
        items = await self._decoded([row for _, row in rows])
        return [replace(item, entry=entry.decode()) for (entry, _), item in zip(rows, items, strict=True) if item is not None]

    def _fields(self, *, vectors: bool) -> list[str]:
        return [*_FIELDS, *((self._spec.field,) if vectors else ())]

    async def _decoded(self, rows: Sequence[Sequence[bytes | None]]) -> list[StoredItem | None]:
        _note_read(len(rows))
        return await run_in_thread(lambda: [self._decode(row) for row in rows], sum(len(row[0] or b"") + _ITEM_CHARS for row in rows))

    def _decode(self, row: Sequence[bytes | None]) -> StoredItem | None:
        value, path, key, created, updated, model, words, ttl, index, *vector = row
        if value is None or path is None or key is None or created is None or updated is None:
            return None
        times = {"created_at": from_micros(1000 * int(created)), "updated_at": from_micros(1000 * int(updated))}
        item = Item(path=json.loads(path), key=key.decode(), value=json.loads(value), **times)
        raw = vector[0] if vector else None
        array = None if raw is None else np.frombuffer(raw, dtype=self._spec.numpy_type).astype(np.float32)
        terms = frozenset((words or b"").decode().split())
        ttl_ms = None if ttl is None else int(ttl)
        return StoredItem("", item, terms, ttl_ms, json.loads(index or b"null"), model != b"x", array)


def _change(owner: str, entry: str, change: PutItem | DeleteItem) -> list[Any]:
    if isinstance(change, DeleteItem):
        return [entry, "delete", *[""] * 8]
    text = item_text(change.value, change.index)
    tags = ",".join(path_tag(owner, change.path[:depth]) for depth in range(len(change.path) + 1))
    return [
        entry,
        "put",
        "" if change.ttl_minutes is None else max(1, round(change.ttl_minutes * 60_000)),
        compact(change.value),
        compact(change.path),
        change.key,
        compact(change.index),
        tags,
        item_terms(text),
        "1" if text else "0",
    ]
