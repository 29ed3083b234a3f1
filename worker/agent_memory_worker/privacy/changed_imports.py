"""Undo an import, but keep memories that have changed since the import."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from agent_memory.features.memories.changes.store import StoredChange
from agent_memory.features.privacy.lineage import LineageMemory, LineageStore
from agent_memory.features.privacy.purge_policy import changed_since, whole_import
from agent_memory.features.sessions.store import SessionStore
from agent_memory.features.transfer.import_progress import ImportOwner, ImportProgress
from agent_memory.foundation.core.feature import AgentOwner, Owner, UndoableExporter
from agent_memory.foundation.core.scope import Scope, SessionRef
from agent_memory.foundation.text.normalization import is_turn
from agent_memory.runtime import Runtime
from agent_memory_client.models import PurgeRequest


async def changed_imports(
    runtime: Runtime,
    scope: Scope,
    source: PurgeRequest,
    page: Sequence[LineageMemory],
    changes: Mapping[str, Sequence[StoredChange]],
    tainted: Collection[str],
) -> set[str]:
    """Return the mids of imported memories that must be kept.

    These memories have changed, have other evidence, or come from sessions that have continued.
    """
    imported = [memory for memory in page if memory.imported == source.import_source]
    changed = {memory.mid for memory in imported if changed_since(memory, changes[memory.mid])}
    changed |= await _confirmed(runtime[LineageStore], scope, source, imported, tainted)
    return changed | await _continued(runtime[SessionStore], scope, source, imported)


async def _confirmed(
    lineage: LineageStore, scope: Scope, source: PurgeRequest, imported: Sequence[LineageMemory], tainted: Collection[str]
) -> set[str]:
    """Return the mids of imported memories that have evidence from elsewhere."""
    cited = {
        memory.mid: {mid for _, piece in memory.pieces for mid in lineage.sources(scope, memory.versions[-1].record, piece)}
        for memory in imported
        if memory.pieces
    }
    mids = sorted(set().union(*cited.values()))
    stored = {memory.mid: memory.imported for memory in await lineage.read(scope, mids)}
    own = {mid for mid, name in stored.items() if name == source.import_source} | set(tainted)
    others = ({*stored, *await lineage.targets(mids)}) - own
    return {mid for mid, sources in cited.items() if (sources - {mid}) & others}


async def _continued(sessions: SessionStore, scope: Scope, source: PurgeRequest, imported: Sequence[LineageMemory]) -> set[str]:
    """Return the mids of imported messages in sessions that clients have since written to."""
    refs: dict[str, SessionRef] = {}
    for memory in imported:
        record = memory.versions[-1].record
        if is_turn(record) and record.session_id is not None:
            refs[memory.mid] = SessionRef(record.session_id, record.namespace, record.user_id)
    sources = await sessions.import_sources(scope, list(refs.values()))
    return {mid for mid, name in zip(refs, sources, strict=True) if name not in (None, source.import_source)}


async def undo_imported_objects(
    runtime: Runtime, scope: Scope, source: PurgeRequest, where: tuple[str | None, str | None], *, dry: bool
) -> Counter[str]:
    """Delete an import's unchanged data, except memories and sessions. Return counts by kind."""
    counts: Counter[str] = Counter()
    if (name := whole_import(source)) is None:
        return counts
    owners = {ImportOwner(*where, None)} if where[1] is not None else {*await import_owners(runtime, scope, name, where)}
    for namespace, user_id, agent_id in owners:
        owner = AgentOwner(namespace, agent_id) if agent_id is not None else Owner(namespace, user_id or "")
        for exporter in runtime.services.exporters:
            if isinstance(exporter, UndoableExporter):
                counts += await exporter.undo_import(scope, owner, name, dry_run=dry)
    return counts


async def import_owners(runtime: Runtime, scope: Scope, name: str, where: tuple[str | None, str | None]) -> list[ImportOwner]:
    """Return the owners of an import's data, filtered by the namespace and user in `where`."""
    owners = await runtime[ImportProgress].owners(scope, name)
    return [owner for owner in owners if where[0] in (None, owner.namespace) and where[1] in (None, owner.user_id)]
