"""Queue the purge of a source, or a dry run that only counts deletions."""

from __future__ import annotations

from agent_memory.features.jobs.operation_store import Mark
from agent_memory.features.jobs.order_store import JobOrder, OrderStore
from agent_memory.foundation.api.principals import list_place_of, writing
from agent_memory.foundation.core.scope import Scope
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory_client.models import PurgeRequest, PurgeResponse

# The job's name in Redis. It deletes everything from the source `what`; with `dry_run`, it only counts.
PURGE = "purge"


def request_of(order: JobOrder) -> PurgeRequest:
    return PurgeRequest.model_validate_json(order.arguments["what"] or "")


class PurgeService:
    def __init__(self, orders: OrderStore) -> None:
        self._orders = orders

    async def order(self, scope: Scope, request: PurgeRequest, namespace: str | None, user_id: str | None, *, dry_run: bool) -> JobOrder:
        """Queue a purge. Raises Forbidden.

        If `namespace` or `user_id` is None, purge everything that the caller may access.
        """
        namespace, user_id = list_place_of(scope, namespace, user_id)
        request_json = request.model_dump_json(exclude_none=True)
        # A dry run is a separate order: it neither replaces a purge nor shares its receipt.
        arguments = {"what": request_json, "namespace": namespace, "user_id": user_id} | ({"dry_run": "true"} if dry_run else {})
        order = JobOrder.of(writing(scope), PURGE, **arguments)
        await self._orders.place_orders(order)
        return order

    def mark(self, order: JobOrder) -> Mark:
        return Mark(DueKind.ORDER, order.name)

    async def outcome(self, order: JobOrder, *, done: bool) -> PurgeResponse:
        receipt = await self._orders.receipt(order.name) if done else None
        operation_id, dry_run = self.mark(order).operation_id, "dry_run" in order.arguments
        if receipt is None:
            return PurgeResponse(status="pending", dry_run=dry_run, operation_id=operation_id)
        counts, named = receipt
        return PurgeResponse(status="ok", dry_run=dry_run, operation_id=operation_id, counts=counts, memory_ids=named if dry_run else None)
