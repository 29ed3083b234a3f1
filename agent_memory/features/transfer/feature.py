"""Register the export and import feature."""

from __future__ import annotations

from agent_memory.features.access.limits import MemoryLimit
from agent_memory.features.jobs.operations import OperationService
from agent_memory.features.memories.changes.store import ChangeStore
from agent_memory.features.memories.commit import MemoryCommits
from agent_memory.features.memories.steps import MemoryScripts
from agent_memory.features.memories.store import MemoryStore
from agent_memory.features.sessions.store import SessionStore
from agent_memory.features.transfer.change_export import ChangeTransfer
from agent_memory.features.transfer.export import ExportService, ExportStore
from agent_memory.features.transfer.import_progress import ImportProgress
from agent_memory.features.transfer.imports import ImportService
from agent_memory.features.transfer.memory_export import MemoryExportReader
from agent_memory.features.transfer.restore import Restorer
from agent_memory.features.transfer.session_export import SessionExportReader
from agent_memory.foundation.core.feature import Feature, KeySpace, Services
from agent_memory.foundation.foundation import Foundation
from agent_memory.foundation.storage.erasures import ErasureGuard


def open_transfer(foundation: Foundation, services: Services) -> None:
    settings, client, keys, spec = foundation.settings, foundation.client, foundation.keys, foundation.spec
    sessions = services[SessionStore]
    receipts = ExportStore(client, keys)
    services[OperationService].receipts = receipts
    reader = MemoryExportReader(client, keys, spec)
    restorer = Restorer(client, keys, services[MemoryScripts], spec, fsync=foundation.fsync)
    changes = ChangeTransfer(client, keys, services[ChangeStore], reader, restorer)
    whole_sessions = SessionExportReader(client, keys, sessions, services.session_parts)
    progress = ImportProgress(client, keys, foundation.ids)
    imports = ImportService(
        settings,
        services[MemoryLimit],
        restorer,
        services[MemoryCommits],
        services[MemoryStore],
        reader,
        changes,
        sessions,
        services.exporters,
        services.session_parts,
        foundation.counter,
        foundation.ids,
        services[ErasureGuard],
        progress,
        foundation.extracts,
    )
    services.add(
        receipts,
        ExportService(reader, changes, whole_sessions, services.exporters, spec, receipts, settings.server.audit_log),
        imports,
        progress,
    )


TRANSFER = Feature(
    name="transfer",
    open=open_transfer,
    keys=(
        KeySpace(
            "arrived:<owner>",
            "set",
            "the owner's names, and keyed digests of lines imported so far",
            "30 days",
            not_exported="it only prevents a repeated import from restoring deleted data",
        ),
        KeySpace("arrivals:<import>", "set", "keyed digests of the owners of an import's data", "30 days", personal=False),
    ),
    eraser=ImportProgress,
    routes=("agent_memory.features.transfer.routes:router", "agent_memory.features.transfer.routes:agents"),
)
