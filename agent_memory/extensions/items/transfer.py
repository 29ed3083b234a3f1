"""Export, import and erase items."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

from agent_memory.extensions.items.service import owner_of
from agent_memory.extensions.items.store import ItemOwner, ItemStore, ItemTimes
from agent_memory.foundation.core.clock import iso
from agent_memory.foundation.core.feature import AgentOwner, ExportLine, Owner, RestoreTarget
from agent_memory.foundation.core.input.validation import validated
from agent_memory.foundation.core.scope import Scope
from agent_memory.foundation.storage.keyspace import tag
from agent_memory_client.models import Instant, OptionalIdentifier, PutItem


class _ItemLine(PutItem):
    """An item in an export. `namespace` is the owner's namespace."""

    namespace: OptionalIdentifier = None
    created_at: Instant
    updated_at: Instant
    ends_at: Instant | None = None


class ItemTransfer:
    kinds = ("item",)

    def __init__(self, store: ItemStore) -> None:
        self._store = store

    async def _owners(self, scope: Scope, owner: Owner) -> list[ItemOwner]:
        return [
            other
            for other in await self._store.load_owners(scope)
            if other.user_id == owner.user_id and owner.namespace in (None, other.namespace)
        ]

    async def export_lines(self, scope: Scope, owner: Owner) -> AsyncIterator[ExportLine]:
        for other in await self._owners(scope, owner):
            async for stored in self._store.scan_items(scope, other, []):
                line: dict[str, Any] = {"kind": "item", "namespace": other.namespace, **stored.item.model_dump(mode="json")}
                ttl = None if stored.ttl_ms is None else stored.ttl_ms / 60_000
                ends = await self._store.load_end(scope, other, stored)
                yield line | {"index": stored.index, "ttl_minutes": ttl, "ends_at": None if ends is None else iso(ends)}

    async def restore_line(self, scope: Scope, target: RestoreTarget, line: ExportLine) -> str:
        """Store an item. Raises BadInput or Forbidden.

        Return "new" if stored. If the path and key exist, return "same" if the value matches, or
        else "other".
        """
        read = validated(_ItemLine, {name: value for name, value in line.items() if name != "op"})
        owner = owner_of(scope, ItemOwner(target.namespace(read.namespace), target.user_id))
        existing_item = await self._store.load_item(scope, owner, read.path, read.key)
        if existing_item is not None:
            return "same" if existing_item.item.value == read.value else "other"
        updated = min(read.updated_at, datetime.now(UTC))  # An item's time cannot be in the future.
        times = ItemTimes(min(read.created_at, updated), updated, read.ends_at, tag(target.source))
        await self._store.write_items(scope, owner, [read], times)
        return "new"

    async def undo_import(self, scope: Scope, owner: Owner | AgentOwner, source: str, *, dry_run: bool) -> Counter[str]:
        """Delete imported items that have not been replaced since the import."""
        owners = await self._owners(scope, owner) if isinstance(owner, Owner) else []
        return Counter(items=sum([await self._store.undo_import(scope, other, tag(source), dry_run=dry_run) for other in owners]))

    async def erase_owner(self, scope: Scope, owner: Owner) -> Counter[str]:
        counts: Counter[str] = Counter()
        for other in await self._owners(scope, owner):
            counts["items"] += await self._store.erase_items(scope, other)
        return counts
