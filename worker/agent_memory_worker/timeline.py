"""Timelines in the background: making one anew."""

from __future__ import annotations

from agent_memory.access.principals import scope_of_work
from agent_memory.jobs.job_store import JobOrder, JobStore
from agent_memory.runtime import Runtime
from agent_memory.timeline.follower import TimelineFollower
from agent_memory.timeline.store import TimelineOwner


async def rebuild_timeline(runtime: Runtime, order: JobOrder) -> None:
    """Makes the timeline of an order's user anew, and says of how many memories."""
    scope = scope_of_work(order.tenant, order.namespaces, order.users)
    owner = TimelineOwner(order.tenant, order.arguments.get("namespace"), order.arguments.get("user_id") or "")
    count = await runtime[TimelineFollower].rebuild(scope, owner)
    await runtime[JobStore].keep_receipt(order, {"memories": count})
