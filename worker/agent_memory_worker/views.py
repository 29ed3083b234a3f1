"""Compute summary views as tasks, and refresh continuous views."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime

from agent_memory.extensions.views.filters import selection_of
from agent_memory.extensions.views.service import MEMORIES_DELETED, MOST_TRIES, REFRESH_VIEW
from agent_memory.extensions.views.store import ViewStore, group_key
from agent_memory.extensions.views.summaries import ViewSummarizer
from agent_memory.features.access.context_limits import ContextLimits
from agent_memory.features.access.tenant_models import TenantModels
from agent_memory.features.jobs.order_store import JobOrder, OrderStore
from agent_memory.features.memories.upkeep.scan import MemoryScan
from agent_memory.foundation.api.principals import scope_of_work
from agent_memory.foundation.core.errors import AgentMemoryError, Conflict, ErasureUnderWay, NotFound, RedisUnavailable
from agent_memory.foundation.core.logs import get_logger
from agent_memory.foundation.core.scope import Scope
from agent_memory.runtime import Runtime
from agent_memory_client.models import SummaryView, TaskStatusEnum

log = get_logger(__name__)

# The maximum number of groups to compute for a view. The largest groups are chosen.
_MOST_GROUPS = 10_000
# Partitions computed at the same time.
_AT_ONCE = 4


async def order_refreshes(runtime: Runtime) -> int:
    """Request a refresh of every continuous view. Return the number of views."""
    orders: list[JobOrder] = []
    for tenant in await runtime[ViewStore].load_tenants():
        scope = scope_of_work(tenant)
        orders += [
            JobOrder.of(scope, REFRESH_VIEW, view_id=view.id) for view in await runtime[ViewStore].load_views(scope) if view.continuous
        ]
    await runtime[OrderStore].place_orders(*orders)
    return len(orders)


async def refresh_view(runtime: Runtime, order: JobOrder) -> None:
    """Refresh a view's partitions. Unchanged partitions do not require a model call."""
    scope = scope_of_work(order.tenant, order.namespaces, order.users)
    view = await runtime[ViewStore].load_view(scope, order.arguments["view_id"] or "")
    if view is not None:
        await _compute(runtime, scope, view, refresh=True)


async def run_view(runtime: Runtime, order: JobOrder) -> None:
    """Compute all partitions of a view, and store the result in its task.

    Raises RedisUnavailable and ErasureUnderWay.
    """
    scope = scope_of_work(order.tenant, order.namespaces, order.users)
    task = await runtime[ViewStore].load_task(scope, order.arguments["task_id"] or "")
    if task is None:
        return
    task.status, task.started_at = TaskStatusEnum.RUNNING, datetime.now(UTC)
    await runtime[ViewStore].put_task(scope, task)
    try:
        view = await runtime[ViewStore].load_view(scope, order.arguments["view_id"] or "")
        if view is None or not await _compute(runtime, scope, view, refresh=False):
            raise NotFound("the view was deleted: create it again")
        task.status = TaskStatusEnum.SUCCESS
    except (RedisUnavailable, ErasureUnderWay):
        raise
    except Exception as error:
        expected = isinstance(error, AgentMemoryError)
        subject = {"tenant": scope.tenant, "view_id": order.arguments["view_id"], "task_id": task.id}
        level = logging.WARNING if expected else logging.ERROR
        log.log(level, "view run failed", **subject, error=error, exc_info=not expected)
        task.status = TaskStatusEnum.FAILED
        task.error_message = str(error)[:500] if expected else f"{type(error).__name__} (see the worker's log)"
    task.completed_at = datetime.now(UTC)
    await runtime[ViewStore].put_task(scope, task)


async def _compute(runtime: Runtime, scope: Scope, view: SummaryView, *, refresh: bool) -> bool:
    """Compute and store the partitions of all groups, and delete the rest.

    Return False if the view was deleted.
    """
    chat = runtime[TenantModels].chat(scope.tenant)
    if chat is not None:
        await runtime[ContextLimits].load_learned(chat.with_model(view.model_name) if view.model_name else chat)
    groups: list[dict[str, str]] = [{}]
    if view.group_by:
        groups = await runtime[MemoryScan].list_groups(scope, selection_of(view, datetime.now(UTC)), view.group_by, _MOST_GROUPS)
        if len(groups) == _MOST_GROUPS:
            log.warning("view has too many groups; computing only the largest", tenant=scope.tenant, view_id=view.id, groups=_MOST_GROUPS)
    before = await runtime[ViewStore].load_partitions(scope, view.id)
    for start in range(0, len(groups), _AT_ONCE):
        batch = groups[start : start + _AT_ONCE]
        olds = [before.get(group_key(group)) if refresh else None for group in batch]
        for _ in range(MOST_TRIES):
            pairs = list(zip(batch, olds, strict=True))
            work = [runtime[ViewSummarizer].compute_partition(scope, view, group, stored=old) for group, old in pairs]
            # An unchanged partition is not stored again: it may have been deleted in the meantime.
            new = [partition for partition, old in zip(await asyncio.gather(*work), olds, strict=True) if partition is not old]
            stored = await runtime[ViewStore].store_partitions(scope, view.id, new)
            if stored is False:
                return False
            if stored:
                break
        else:
            raise Conflict(MEMORIES_DELETED)
    current = {group_key(group) for group in groups}
    await runtime[ViewStore].drop_partitions(scope, view.id, [name for name in before if name not in current])
    return True
