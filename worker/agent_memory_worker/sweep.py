"""Sweeping: memories whose time is over leave the place of current ones, versions that were retired too early get their vector, and
what was forgotten long ago is deleted for good."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from agent_memory.runtime import Runtime
from agent_memory.scope import Scope
from agent_memory.services.access import scope_of_work
from agent_memory.storage.lua import Claim
from agent_memory_worker.index import index_memories

_BATCH = 200


async def end_forgotten(runtime: Runtime) -> int:
    """Deletes for good what was forgotten more than FORGOTTEN_KEPT_DAYS ago and has not come back; returns how many memories that were."""
    days = runtime.settings.longterm.forgotten_kept_days
    if not days:
        return 0
    before = datetime.now(UTC) - timedelta(days=days)
    gone = offset = 0
    while some := await runtime.changes.forgotten(before, offset, _BATCH):
        for tenant, change_id in some:
            scope = scope_of_work(tenant)
            deleted = await _delete_forgotten(runtime, scope, change_id)
            gone += deleted
            # What has come back by another way keeps its history, and the change its place in the list.
            offset += not deleted
    return gone


async def _delete_forgotten(runtime: Runtime, scope: Scope, change_id: str) -> bool:
    (change,) = await runtime.changes.load(scope, [change_id])
    names = [(mid, version) for mid, version, _ in change.memories] if change is not None else []
    versions = [one for one in await runtime.changes.versions(scope, names) if one is not None]
    here = await runtime.memories.find(scope, [one.record.id for one in versions])
    records = [one.record for one, current in zip(versions, here, strict=True) if current is None]
    await runtime.memories.delete(scope, records)
    return bool(records)


async def sweep(runtime: Runtime) -> int:
    """Moves what has ended and embeds what lacks its vector; returns how many memories that were. Reads never wait for it."""
    done = 0
    while ended := await runtime.memories.ended(_BATCH):
        moved = await runtime.memories.sweep(ended)
        done += moved
        if not moved:
            break
    while bare := await runtime.memories.bare(_BATCH):
        await index_memories(runtime, [Claim(name, 0, 1) for name in bare])
        await runtime.memories.no_longer_bare(bare)
        done += len(bare)
    return done
