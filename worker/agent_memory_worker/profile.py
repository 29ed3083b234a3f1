"""Profiles in the background: making one anew."""

from __future__ import annotations

from agent_memory.access.principals import scope_of_work
from agent_memory.jobs.order_store import JobOrder, OrderStore
from agent_memory.profile.follower import ProfileFollower
from agent_memory.profile.store import ProfileOwner
from agent_memory.runtime import Runtime


async def rebuild_profile(runtime: Runtime, order: JobOrder) -> None:
    """Makes the profile of an order's user anew, and says of how many memories."""
    scope = scope_of_work(order.tenant, order.namespaces, order.users)
    owner = ProfileOwner(order.tenant, order.arguments.get("namespace"), order.arguments.get("user_id") or "")
    count = await runtime[ProfileFollower].rebuild(scope, owner)
    await runtime[OrderStore].keep_receipt(order, {"memories": count})
