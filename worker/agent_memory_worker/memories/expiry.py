"""Expire memories, and delete forgotten ones."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from agent_memory.features.memories.changes.store import FORGOTTEN, ChangeStore
from agent_memory.features.memories.store import MemoryStore
from agent_memory.features.memories.upkeep.deletion import MemoryDeletion
from agent_memory.features.memories.upkeep.reindex import Reindexer
from agent_memory.features.memories.usage.store import UsageStore
from agent_memory.foundation.api.principals import scope_of_work
from agent_memory.foundation.core.errors import ModelAnswerInvalid
from agent_memory.foundation.core.scope import Scope
from agent_memory.foundation.storage.outbox import Claim
from agent_memory.runtime import Runtime
from agent_memory_worker.memories.indexing import index_memories
from agent_memory_worker.refused_texts import embed_singly

_BATCH = 200


async def end_forgotten(runtime: Runtime) -> int:
    """Delete forgotten memories that can no longer be restored. Return the number of changes."""
    days = runtime.settings.longterm.forgotten_kept_days
    before = datetime.now(UTC) - timedelta(days=days)
    deleted_count = offset = 0
    while changes := await runtime[ChangeStore].find_forgettings(before, offset, _BATCH):
        for tenant, change_id in changes:
            scope = scope_of_work(tenant)
            deleted = await _delete_forgotten(runtime, scope, change_id)
            deleted_count += deleted
            # A change whose memories were all restored stays in the list, so the next page starts after it.
            offset += not deleted
    return deleted_count


async def _delete_forgotten(runtime: Runtime, scope: Scope, change_id: str) -> bool:
    (change,) = await runtime[ChangeStore].load_changes(scope, [change_id])
    if change is not None and FORGOTTEN in change.origin:
        await runtime[ChangeStore].delete_record(change_id)
        return True
    names = [(mid, version) for mid, version, _ in change.memories] if change is not None else []
    versions = [version for version in await runtime[ChangeStore].load_versions(scope, names) if version is not None]
    current_memories = await runtime[MemoryStore].find(scope, [version.record.id for version in versions])
    records = [version.record for version, current in zip(versions, current_memories, strict=True) if current is None]
    await runtime[MemoryDeletion].delete_records(scope, records)
    return bool(records)


async def sweep(runtime: Runtime) -> int:
    """Expire memories, and embed ended versions. Return the number of processed records."""
    done = 0
    while ended := await runtime[MemoryStore].find_ended(_BATCH):
        moved = await runtime[MemoryStore].sweep_memories(ended)
        done += moved
        if not moved:
            break
    while bare := await runtime[MemoryStore].list_unembedded(_BATCH):
        try:
            await index_memories(runtime, [Claim(name, 0, 1) for name in bare])
        except ModelAnswerInvalid:
            await embed_singly(runtime.embedder, bare, lambda name: index_memories(runtime, [Claim(name, 0, 1)]))
        await runtime[MemoryStore].unmark_unembedded(bare)
        done += len(bare)
    return done


async def keep_up(runtime: Runtime) -> int:
    """Update usage counts, sweep, and delete forgotten memories. Return the number of changed memories."""
    await runtime[Reindexer].drop_former_indexes()
    return await runtime[UsageStore].fold_usage() + await sweep(runtime) + await end_forgotten(runtime)
