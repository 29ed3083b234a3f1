"""The items feature: JSON values with a namespace path and a key."""

from __future__ import annotations

from agent_memory.extensions.items.search import ItemSearch
from agent_memory.extensions.items.search_index import index_schemas
from agent_memory.extensions.items.service import ItemService
from agent_memory.extensions.items.store import ItemStore
from agent_memory.extensions.items.transfer import ItemTransfer
from agent_memory.features.access.tenant_models import TenantModels
from agent_memory.foundation.core.feature import Feature, KeySpace, PeriodicJob, Services
from agent_memory.foundation.core.settings import Settings
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.foundation.foundation import Foundation


def open_items(foundation: Foundation, services: Services) -> None:
    store = ItemStore(foundation.client, foundation.keys, foundation.spec)
    search = ItemSearch(store, foundation.settings, foundation.keys, foundation.spec, foundation.reader, services[TenantModels])
    services.add(store, search, ItemService(store, search), ItemTransfer(store))


_UNTIL = "until deleted or expired"


def _minutes(settings: Settings) -> float:
    return 10.0


FEATURE = Feature(
    name="items",
    open=open_items,
    routes=("agent_memory.extensions.items.routes:router",),
    examples="agent_memory.extensions.items.examples:EXAMPLES",
    indexes=index_schemas,
    keys=(
        KeySpace("it:<iid>", "hash", "an item: a JSON value with its path, key, terms and vector", _UNTIL),
        KeySpace("its:<owner>", "zset", 'an owner\'s items: "<path>!<key>!<iid>"', _UNTIL),
        KeySpace("itx:<owner>", "zset", "an owner's items that expire, by expiry time", _UNTIL),
        KeySpace("itn:<owner>", "hash", "the number of items in each of an owner's paths", _UNTIL),
        KeySpace("ito:<tenant>", "hash", "the owners of items in this tenant", _UNTIL),
    ),
    due_work={DueKind.ITEM: "agent_memory_worker.items:embed_items"},
    embed_missing="agent_memory_worker.items:embed_missing",
    schedule={"items": PeriodicJob("agent_memory_worker.items:mark_unembedded", _minutes)},
    exporter=ItemTransfer,
    eraser=ItemTransfer,
)
