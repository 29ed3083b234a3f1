"""Compaction as its callers see it: they order it and learn how many memories remain; workers do it."""

from __future__ import annotations

from agent_memory.scope import Scope
from agent_memory.services.access import writing
from agent_memory.storage.operations import Mark
from agent_memory.storage.orders import Errand, Order, OrderStore
from agent_memory.storage.survey import Selection, Survey
from agent_memory.tasks import DueKind


class CompactionService:
    """Orders compactions."""

    def __init__(self, orders: OrderStore, survey: Survey) -> None:
        self._orders = orders
        self._survey = survey

    async def order(self, scope: Scope, namespace: str | None, user_id: str | None, session_id: str | None = None) -> Mark:
        """Orders that repeats among the memories of a namespace, a user and a session (or all) be merged; returns the work to wait for."""
        order = Order.of(writing(scope), Errand.COMPACT, namespace=namespace, user_id=user_id, session_id=session_id)
        await self._orders.place(order)
        return Mark(DueKind.ORDER, order.name)

    async def remaining(self, scope: Scope, namespace: str | None, user_id: str | None, session_id: str | None = None) -> int:
        """How many memories there are now."""
        return await self._survey.count(scope, Selection.of(namespace, user_id, session_id))
