"""Delete memories together with the data derived from them."""

from __future__ import annotations

from collections.abc import Sequence

from agent_memory.features.memories.store import MemoryStore
from agent_memory.features.memories.upkeep.followers import MemoryFollowers
from agent_memory.foundation.core.feature import DeletionPurger, Group, Purger
from agent_memory.foundation.core.permissions import permit_writing
from agent_memory.foundation.core.scope import Scope
from agent_memory_client.models import MemoryRecord


class MemoryDeletion:
    def __init__(self, store: MemoryStore, followers: MemoryFollowers, purgers: Sequence[Purger]) -> None:
        """Store `purgers` without copying it, because features that open later extend it."""
        self._store = store
        self._followers = followers
        self._purgers = purgers

    async def delete_records(self, scope: Scope, records: Sequence[MemoryRecord]) -> int:
        """Permanently delete memories and the data derived from them. Return the number of deleted memories."""
        permit_writing(scope, records)
        await self._purge(scope, records)
        deleted = await self._store.delete_records(scope, records)
        # Purge again, because the data may have been derived again in the meantime.
        await self._purge(scope, records)
        await self._followers.follow([self._store.mid(scope, record.id) for record in records])
        return deleted

    async def _purge(self, scope: Scope, records: Sequence[MemoryRecord]) -> None:
        groups = {Group(record.namespace, record.user_id, record.session_id, str(record.memory_type)) for record in records}
        for purger in self._purgers:
            if isinstance(purger, DeletionPurger):
                await purger.follow_deletion(scope, groups)
