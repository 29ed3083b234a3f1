"""Register the forget-on-request feature."""

from __future__ import annotations

from agent_memory.features.access.tenant_models import TenantModels
from agent_memory.features.memories.changes.service import HistoryService
from agent_memory.features.memories.changes.store import ChangeStore
from agent_memory.features.memories.steps import MemoryScripts
from agent_memory.features.memories.store import MemoryStore
from agent_memory.features.memories.upkeep.followers import MemoryFollowers
from agent_memory.features.privacy.forget.candidates import CandidateFinder
from agent_memory.features.privacy.forget.requests import FORGET as APPROVED
from agent_memory.features.privacy.forget.requests import ForgetRequests
from agent_memory.features.privacy.forget.service import ForgetService
from agent_memory.features.privacy.forget.sessions import SessionReader
from agent_memory.features.privacy.forget.store import ForgetStore
from agent_memory.features.privacy.lineage import LineageStore
from agent_memory.features.sessions.store import SessionStore
from agent_memory.foundation.core.feature import Feature, KeySpace, Services
from agent_memory.foundation.foundation import Foundation


def open_forget(foundation: Foundation, services: Services) -> None:
    settings, client, keys = foundation.settings, foundation.client, foundation.keys
    sessions, lineage = services[SessionStore], services[LineageStore]
    changes = services[ChangeStore]
    memories = services[MemoryStore]
    store = ForgetStore(client, keys, memories, changes, undo_seconds=settings.longterm.forget_undo_seconds, fsync=foundation.fsync)
    forget = ForgetService(
        store,
        CandidateFinder(client, memories, lineage, services[TenantModels], latin_only=settings.models.embeds_latin_only),
        lineage,
        SessionReader(client, keys, sessions),
        sessions,
        changes,
        services.purgers,
        services[MemoryFollowers],
    )
    requests = ForgetRequests(services[MemoryScripts], changes, forget, settings.longterm.forget_in_conversation)
    services[HistoryService].register_approval(APPROVED, requests.approve)
    services[HistoryService].undo_forgetting = forget.undo
    services.add(store, forget, requests)


FORGET = Feature(
    name="forget",
    open=open_forget,
    routes=("agent_memory.features.privacy.forget.routes:router",),
    keys=(
        KeySpace(
            "fg:<id>",
            "hash",
            "the receipt of a request to forget. `t`, `ns`, `u` owner; `nss` the caller's namespaces; `at` time of the request; "
            "`by` who made it; `un` deadline for an undo. After an undo: `undone` result, `back` restored data. Other fields: a copy for "
            "the undo (`agent_memory/features/privacy/lua/kept_copy.lua`)",
            "FORGET_UNDO_SECONDS",
            not_exported="only an undo restores forgotten data",
        ),
        KeySpace(
            "fo:<mid>",
            "string",
            "the owner of a forgotten memory's id",
            "as the receipt, or until an undo",
            not_exported="it only reserves the id and contains no forgotten data",
        ),
        KeySpace(
            "fgu:<user>",
            "zset",
            "a user's receipts of requests to forget, by the time (ms) when they expire",
            "as the last of them",
            not_exported="it contains only ids of receipts",
        ),
    ),
    eraser=ForgetStore,
)
