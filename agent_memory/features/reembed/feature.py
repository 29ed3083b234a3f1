"""Register the re-embedding feature, which changes the embedding model without downtime."""

from __future__ import annotations

from agent_memory.features.memories.upkeep.reindex import Reindexer
from agent_memory.features.reembed.service import ReembedService
from agent_memory.features.reembed.store import ReembedStore
from agent_memory.foundation.core.feature import Feature, KeySpace, Services
from agent_memory.foundation.foundation import Foundation


def open_reembed(foundation: Foundation, services: Services) -> None:
    store = ReembedStore(foundation.client, foundation.keys)
    services.add(store, ReembedService(foundation.settings, store, foundation.counter))
    services[Reindexer].load_change = store.load_state


REEMBED = Feature(
    name="reembed",
    open=open_reembed,
    routes=("agent_memory.features.reembed.routes:router",),
    examples="agent_memory.features.reembed.routes:EXAMPLES",
    background=("agent_memory_worker.reembed:run_reembedding",),
    keys=(
        KeySpace("re", "hash", "a change of the embedding model: models, phase, progress", "until confirmed or aborted", personal=False),
        KeySpace("re:todo", "set", "names of memories and versions lacking the other model's vector", "as the change", personal=False),
        KeySpace("re:refused", "set", "names of memories and versions whose text a model rejects", "as the change", personal=False),
        KeySpace("re:processes", "hash", "the model that each live process uses, and the time", "as the change", personal=False),
        KeySpace("re:turn", "string", "the worker that is adding vectors now", "15 seconds", personal=False),
    ),
)
