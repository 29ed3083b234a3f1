"""Declare the long-term memory feature: records, search, history and upkeep."""

from __future__ import annotations

from agent_memory.features.access.limits import MemoryLimit
from agent_memory.features.access.tenant_models import TenantModels
from agent_memory.features.jobs.order_store import OrderStore
from agent_memory.features.memories.changes.service import HistoryService
from agent_memory.features.memories.changes.store import ChangeStore
from agent_memory.features.memories.commit import MemoryCommits
from agent_memory.features.memories.duplicates.service import COMPACT, DuplicateService
from agent_memory.features.memories.duplicates.store import MergeStore
from agent_memory.features.memories.quarantine.service import QuarantineService
from agent_memory.features.memories.retention.service import RetentionService
from agent_memory.features.memories.search.document_frequency import DocumentFrequencies
from agent_memory.features.memories.search.pages import PageReader
from agent_memory.features.memories.search.query import QueryBuilder
from agent_memory.features.memories.search.rewriting import QueryRewriter
from agent_memory.features.memories.search.service import SearchService
from agent_memory.features.memories.service import MemoryService
from agent_memory.features.memories.shown_memories import ShownMemoryReader
from agent_memory.features.memories.similar_memories import SimilarMemoryStore
from agent_memory.features.memories.steps import MemoryScripts
from agent_memory.features.memories.store import MemoryStore
from agent_memory.features.memories.upkeep.deletion import MemoryDeletion
from agent_memory.features.memories.upkeep.followers import MemoryFollowers
from agent_memory.features.memories.upkeep.idle import IdleTenants
from agent_memory.features.memories.upkeep.reindex import Reindexer
from agent_memory.features.memories.upkeep.scan import MemoryScan, Selection
from agent_memory.features.memories.usage.log import UsageLog
from agent_memory.features.memories.usage.store import UsageStore
from agent_memory.foundation.api.principals import scope_of_work
from agent_memory.foundation.core.feature import Feature, PeriodicJob, Services
from agent_memory.foundation.core.settings import Settings
from agent_memory.foundation.foundation import Foundation


def open_memories(foundation: Foundation, services: Services) -> None:
    settings, client, keys, spec = foundation.settings, foundation.client, foundation.keys, foundation.spec
    neighbors_ms = round(settings.longterm.neighbours_after_seconds * 1000)
    scripts = MemoryScripts(client, keys, fsync=foundation.fsync, neighbors_ms=neighbors_ms)
    store = MemoryStore(client, keys, scripts, spec, fsync=foundation.fsync)
    commits = MemoryCommits(keys, scripts)
    changes = ChangeStore(client, keys, scripts)
    neighbors = SimilarMemoryStore(client, keys, store)
    scan = MemoryScan(client, keys, spec, store)
    usage_store = UsageStore(client, keys)
    usage = UsageLog(usage_store)
    foundation.on_close(usage.close)
    followers = MemoryFollowers(services.followers)
    deletion = MemoryDeletion(store, followers, services.purgers)
    limit = MemoryLimit(settings.limits, lambda tenant: scan.count_memories(scope_of_work(tenant), Selection()))
    services.add(
        scripts,
        store,
        commits,
        changes,
        neighbors,
        scan,
        usage_store,
        usage,
        limit,
        followers,
        deletion,
        MergeStore(client, keys, commits),
        MemoryService(settings, store, neighbors, commits, usage, limit, followers, deletion),
        HistoryService(store, changes, commits),
        QuarantineService(client, keys, spec, store, changes),
        RetentionService(scan, commits),
        DuplicateService(services[OrderStore], scan),
        Reindexer(client, keys, foundation.outbox, spec, foundation.schemas),
        IdleTenants(client, keys),
    )
    _open_search(foundation, services, store, usage)


def _open_search(foundation: Foundation, services: Services, store: MemoryStore, usage: UsageLog) -> None:
    settings, reader = foundation.settings, foundation.reader
    frequencies = DocumentFrequencies(settings, reader, store)
    rewriter = QueryRewriter(settings, services[TenantModels].chat)
    reranks = foundation.reranker is not None
    queries = QueryBuilder(settings, frequencies, services[TenantModels].embedder, rewriter, reranks=reranks)
    cards = ShownMemoryReader(foundation.client, foundation.keys)
    pages = PageReader(reader, store, cards)
    search = SearchService(settings, reader, store, cards, queries, foundation.reranker, pages, usage)
    services.add(cards, pages, queries, search)


def _minutes_of_compaction(settings: Settings) -> float | None:
    return settings.compaction.every_minutes if settings.longterm.enabled else None


def _minutes_of_upkeep(settings: Settings) -> float | None:
    return settings.longterm.usage_every_minutes if settings.longterm.enabled else None


def _minutes_of_retention(settings: Settings) -> float | None:
    rules = settings.forgetting
    limited = rules.enabled and (rules.max_age_days, rules.max_inactive_days, rules.budget_keep_top_n) != (None, None, None)
    return rules.every_minutes if limited else None


MEMORIES = Feature(
    name="memories",
    open=open_memories,
    routes=("agent_memory.features.memories.routes:router", "agent_memory.features.memories.routes:quarantine_router"),
    jobs={COMPACT: "agent_memory_worker.memories.duplicates:run_compaction"},
    schedule={
        "compact": PeriodicJob("agent_memory_worker.memories.duplicates:compact_changed", _minutes_of_compaction),
        "forget": PeriodicJob("agent_memory_worker.memories.retention:forget_by_settings", _minutes_of_retention),
        "usage": PeriodicJob("agent_memory_worker.memories.expiry:keep_up", _minutes_of_upkeep),
    },
)
