"""Import summary views from the archived server (see docs/migrating.md)."""

from __future__ import annotations

from typing import Any

from agent_memory.extensions.views.filters import check_view
from agent_memory.extensions.views.store import Partition, ViewStore, group_key
from agent_memory.foundation.core.errors import BadInput, UnsupportedRequest
from agent_memory.foundation.core.scope import Scope
from agent_memory_client.models import SummaryView, SummaryViewPartitionResult


class ArchivedViews:
    """Imports views and partitions. A dry run only reports which of them would be new."""

    def __init__(self, store: ViewStore) -> None:
        self._store = store
        self._views: set[str] = set()
        self._partitions: set[tuple[str, str]] = set()

    async def bring_in_view(self, scope: Scope, values: dict[str, Any], *, dry_run: bool) -> bool:
        """Store a view; return True if it is new. Raises ValueError for an invalid view."""
        view = SummaryView.model_validate(values)
        try:
            check_view(view)
        except (BadInput, UnsupportedRequest) as error:
            raise ValueError(error.message) from error
        if not dry_run:
            return await self._store.add_view(scope, view)
        fresh = view.id not in self._views and await self._store.load_view(scope, view.id) is None
        self._views.add(view.id)
        return fresh

    async def bring_in_partition(self, scope: Scope, values: dict[str, Any], *, dry_run: bool) -> bool | None:
        """Store a partition, unless `dry_run`.

        Return True if it is new, False if its group already has a partition, and None if its view is missing. Raises
        ValueError for an invalid partition.
        """
        result = SummaryViewPartitionResult.model_validate(values)
        if not dry_run:
            # The empty fingerprint makes the next refresh of a continuous view compute this partition.
            return await self._store.add_partition(scope, result.view_id, Partition(result, ""))
        name = (result.view_id, group_key(result.group))
        if result.view_id not in self._views and await self._store.load_view(scope, result.view_id) is None:
            return None
        if name in self._partitions or name[1] in await self._store.load_partitions(scope, result.view_id):
            return False
        self._partitions.add(name)
        return True
