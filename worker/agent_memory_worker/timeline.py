"""Rebuild timelines, and summarize finished days, weeks and months."""

from __future__ import annotations

from agent_memory.extensions.timeline.follower import TimelineFollower
from agent_memory.extensions.timeline.service import SUMMARIZE
from agent_memory.extensions.timeline.store import TimelineOwner
from agent_memory.extensions.timeline.summaries.store import SummaryStore
from agent_memory.extensions.timeline.summaries.summarizer import PeriodSummarizer
from agent_memory.features.jobs.order_store import JobOrder, OrderStore
from agent_memory.foundation.api.principals import scope_of_work
from agent_memory.runtime import Runtime

# Timelines per run.
_AT_ONCE = 1_000


async def order_summaries(runtime: Runtime) -> int:
    """Request summaries for timelines with finished periods. Return the number of timelines."""
    waiting = await runtime[SummaryStore].waiting_timelines(_AT_ONCE)
    await runtime[OrderStore].place_orders(*(JobOrder(SUMMARIZE, tenant, {"timeline": owner}) for owner, tenant in waiting))
    return len(waiting)


async def summarize_periods(runtime: Runtime, order: JobOrder) -> None:
    """Write a timeline's due summaries. Raises ModelUnavailable, which triggers a retry."""
    await runtime[PeriodSummarizer].summarize(order.arguments["timeline"] or "", order.tenant)


async def rebuild_timeline(runtime: Runtime, order: JobOrder) -> None:
    """Rebuild the user's timeline, and store the number of memories in the receipt."""
    scope = scope_of_work(order.tenant, order.namespaces, order.users)
    owner = TimelineOwner(order.tenant, order.arguments.get("namespace"), order.arguments.get("user_id") or "")
    count = await runtime[TimelineFollower].rebuild(scope, owner)
    await runtime[OrderStore].keep_receipt(order, {"memories": count})
