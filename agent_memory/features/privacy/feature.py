"""Register the erasure and purge feature."""

from __future__ import annotations

from agent_memory.features.jobs.order_store import OrderStore
from agent_memory.features.memories.steps import MemoryScripts
from agent_memory.features.memories.store import MemoryStore
from agent_memory.features.privacy.erasure_store import ErasureStore
from agent_memory.features.privacy.lineage import LineageStore
from agent_memory.features.privacy.purge import PURGE, PurgeService
from agent_memory.features.privacy.traces import TraceStore
from agent_memory.foundation.core.feature import Feature, Services
from agent_memory.foundation.foundation import Foundation


def open_privacy(foundation: Foundation, services: Services) -> None:
    client, keys, spec = foundation.client, foundation.keys, foundation.spec
    scripts = services[MemoryScripts]
    erasures = ErasureStore(client, keys, spec)
    services.add(
        erasures,
        PurgeService(services[OrderStore]),
        LineageStore(client, keys, scripts, spec),
        TraceStore(client, keys, services[MemoryStore], erasures, scripts, spec),
    )


PRIVACY = Feature(
    name="privacy",
    open=open_privacy,
    routes=("agent_memory.features.privacy.routes:router", "agent_memory.features.privacy.routes:persons"),
    jobs={PURGE: "agent_memory_worker.privacy.purge:purge"},
)
