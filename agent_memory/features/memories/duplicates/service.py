"""Queue compactions (merges of repeated memories), and count the remaining memories."""

from __future__ import annotations

from agent_memory.features.jobs.operation_store import Mark
from agent_memory.features.jobs.order_store import JobOrder, OrderStore
from agent_memory.features.memories.upkeep.scan import MemoryScan, Selection
from agent_memory.foundation.api.principals import writing
from agent_memory.foundation.core.scope import Scope
from agent_memory.foundation.core.task_kinds import DueKind

# The name of the job in Redis. The job merges the repeats in a namespace, user or session, or all repeats.
COMPACT = "compact"


class DuplicateService:
    def __init__(self, orders: OrderStore, survey: MemoryScan) -> None:
        self._orders = orders
        self._survey = survey

    async def order_compaction(self, scope: Scope, namespace: str | None, user_id: str | None, session_id: str | None = None) -> Mark:
        """Queue a compaction and return its mark. None matches everything."""
        order = JobOrder.of(writing(scope), COMPACT, namespace=namespace, user_id=user_id, session_id=session_id)
        await self._orders.place_orders(order)
        return Mark(DueKind.ORDER, order.name)

    async def count_remaining(self, scope: Scope, namespace: str | None, user_id: str | None, session_id: str | None = None) -> int:
        return await self._survey.count_memories(scope, Selection.of(namespace, user_id, session_id))
