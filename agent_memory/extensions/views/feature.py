"""The summary views feature: summaries of groups of memories."""

from __future__ import annotations

from agent_memory.extensions.views.service import REFRESH_VIEW, RUN_VIEW, ViewService
from agent_memory.extensions.views.store import ViewStore
from agent_memory.extensions.views.summaries import ViewSummarizer
from agent_memory.extensions.views.transfer import ViewTransfer
from agent_memory.features.access.tenant_models import TenantModels
from agent_memory.features.jobs.order_store import OrderStore
from agent_memory.features.memories.upkeep.scan import MemoryScan
from agent_memory.foundation.core.feature import Feature, KeySpace, PeriodicJob, Services
from agent_memory.foundation.core.settings import Settings
from agent_memory.foundation.foundation import Foundation
from agent_memory.foundation.storage.erasures import ErasureGuard


def open_views(foundation: Foundation, services: Services) -> None:
    store = ViewStore(foundation.client, foundation.keys)
    summarizer = ViewSummarizer(services[MemoryScan], services[TenantModels].chat, foundation.counter)
    services.add(
        store,
        summarizer,
        ViewService(foundation.settings, store, services[OrderStore], summarizer, services[ErasureGuard]),
        ViewTransfer(store),
    )


def _minutes(settings: Settings) -> float:
    return settings.views.refresh_every_minutes


FEATURE = Feature(
    name="views",
    open=open_views,
    routes=("agent_memory.extensions.views.routes:router",),
    examples="agent_memory.extensions.views.examples:EXAMPLES",
    keys=(
        KeySpace("sv:<tenant>", "hash", "a tenant's summary views, by id", "until deleted"),
        KeySpace("svp:<view>", "hash", "a view's partitions, by group, each with its sources", "until its view is deleted"),
        KeySpace("svt", "set", "tenants that have had views", "forever", personal=False),
        KeySpace("tk:<task>", "string", "a task that a caller can follow", "7 days", personal=False),
    ),
    jobs={RUN_VIEW: "agent_memory_worker.views:run_view", REFRESH_VIEW: "agent_memory_worker.views:refresh_view"},
    schedule={"views": PeriodicJob("agent_memory_worker.views:order_refreshes", _minutes)},
    exporter=ViewTransfer,
    eraser=ViewTransfer,
    purger=ViewTransfer,
)
