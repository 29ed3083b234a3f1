"""Declare the jobs feature: background work that callers can track, retry or drop."""

from __future__ import annotations

from agent_memory.features.jobs.erasure_orders import ErasureOrders
from agent_memory.features.jobs.load_store import LoadStore
from agent_memory.features.jobs.operation_store import OperationStore
from agent_memory.features.jobs.operations import OperationService
from agent_memory.features.jobs.order_store import OrderStore
from agent_memory.foundation.api.idempotency import IdempotencyService
from agent_memory.foundation.core.feature import Feature, KeySpace, Services
from agent_memory.foundation.foundation import Foundation
from agent_memory.foundation.storage.dead_messages import CarrierGuard
from agent_memory.foundation.storage.erasures import ErasureGuard
from agent_memory.foundation.storage.job_times import JobTimes


def open_jobs(foundation: Foundation, services: Services) -> None:
    client, keys = foundation.client, foundation.keys
    services.add(
        OrderStore(client, keys),
        ErasureGuard(client, keys),
        ErasureOrders(client, keys, fsync=foundation.fsync),
        IdempotencyService(client, keys),
        OperationService(OperationStore(client, keys)),
        JobTimes(client, keys),
        CarrierGuard(client, keys),
        LoadStore(client, keys),
    )


JOBS = Feature(
    name="jobs",
    open=open_jobs,
    keys=(
        KeySpace(
            "load:<step>:<begin>",
            "hash",
            "metrics for the `<step>` seconds after `<begin>`; `owner`: the process that adds the installation's totals",
            "2 hours (1-minute steps) or 25 hours (10-minute steps)",
            personal=False,
        ),
    ),
    routes=("agent_memory.features.jobs.routes:router",),
)
