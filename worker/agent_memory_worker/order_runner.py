"""Run orders, which are stored requests for background tasks."""

from __future__ import annotations

from agent_memory.feature_list import FEATURES
from agent_memory.features.jobs.order_store import OrderStore
from agent_memory.foundation.core.errors import UnknownWork
from agent_memory.foundation.core.feature import import_name
from agent_memory.runtime import Runtime

_JOBS = {name: run for feature in FEATURES for name, run in feature.jobs.items()}


async def carry_out(runtime: Runtime, name: str) -> None:
    """Run an order if it still exists. Idempotent.

    Raises UnknownWork if this version does not know the job.
    """
    order = await runtime[OrderStore].load_order(name)
    if order is None:
        return
    if order.errand not in _JOBS:
        raise UnknownWork(f"only a newer version supports the job {order.errand[:64]!r}")
    await import_name(_JOBS[order.errand])(runtime, order)
