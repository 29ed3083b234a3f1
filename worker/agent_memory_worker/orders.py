"""Carrying out orders: what each errand is."""

from __future__ import annotations

from agent_memory.errors import UnknownWork
from agent_memory.runtime import Runtime
from agent_memory.services.access import scope_of_work
from agent_memory.storage.orders import Errand, Order
from agent_memory.storage.survey import Selection
from agent_memory_worker.compact import compact
from agent_memory_worker.purge import purge
from agent_memory_worker.views import refresh_view, run_view


async def carry_out(runtime: Runtime, name: str) -> None:
    """Does what an order asks for; an order that is no more asks for nothing. Done twice, the second time finds little to do."""
    order = await runtime.orders.load(name)
    if order is None:
        return
    match order.errand:
        case Errand.COMPACT:
            scope = scope_of_work(order.tenant, order.namespaces, order.users)
            # An order that an older server wrote names no session.
            given = order.arguments
            await compact(runtime, scope, Selection.of(given["namespace"], given["user_id"], given.get("session_id")))
        case Errand.RUN_VIEW:
            await run_view(runtime, order, _required(order, "task_id"))
        case Errand.REFRESH_VIEW:
            await refresh_view(runtime, order)
        case Errand.PURGE:
            await purge(runtime, order)
        case _:
            raise UnknownWork(f"only a newer version knows the errand {str(order.errand)[:64]!r}")


def _required(order: Order, name: str) -> str:
    value = order.arguments[name]
    assert value is not None
    return value
