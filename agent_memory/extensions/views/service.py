"""Implement the API operations for summary views."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agent_memory.extensions.views.filters import check_group, check_view, users_named
from agent_memory.extensions.views.store import ViewStore
from agent_memory.extensions.views.summaries import ViewSummarizer
from agent_memory.features.jobs.order_store import JobOrder, OrderStore
from agent_memory.foundation.api.principals import writing
from agent_memory.foundation.core.errors import Conflict, Forbidden, NotFound
from agent_memory.foundation.core.ids import made_id
from agent_memory.foundation.core.permissions import access_denied
from agent_memory.foundation.core.scope import Scope, Work, carrying_out
from agent_memory.foundation.core.settings import Settings
from agent_memory.foundation.storage.erasures import ErasureGuard
from agent_memory_client import models

MAX_VIEWS = 1000
MOST_TRIES = 5
"""Maximum attempts to compute a partition. Another is needed if one of its memories is deleted meanwhile."""
MEMORIES_DELETED = "the memories to summarize are constantly being deleted: try again"
# Job names, as stored in Redis.
RUN_VIEW = "run_view"
"""Job: compute all partitions of view `view_id` for task `task_id`."""
REFRESH_VIEW = "refresh_view"
"""Job: compute the outdated partitions of view `view_id`."""


class ViewService:
    def __init__(
        self, settings: Settings, store: ViewStore, orders: OrderStore, summarizer: ViewSummarizer, erasures: ErasureGuard
    ) -> None:
        self._settings = settings
        self._store = store
        self._orders = orders
        self._summarizer = summarizer
        self._erasures = erasures

    async def create_view(self, scope: Scope, body: models.CreateSummaryViewRequest) -> models.SummaryView:
        """Store a view under a new id. Raises UnsupportedRequest, BadInput or Forbidden.

        Raises Conflict if MAX_VIEWS views exist, and ErasureUnderWay while a user in the filters is being erased.
        """
        _whole_tenant(writing(scope))
        check_view(body)
        for user_id in users_named(body.filters):
            await self._erasures.require_none(scope.tenant, None, user_id)
        if await self._store.count_views(scope) >= MAX_VIEWS:
            raise Conflict(f"there are already {MAX_VIEWS} views, the maximum: delete some first")
        view = models.SummaryView(id=made_id(), **body.model_dump())
        await self._store.add_view(scope, view)
        return view

    async def list_views(self, scope: Scope) -> Sequence[models.SummaryView]:
        return [view for view in await self._store.load_views(scope) if _reaches_view(scope, view)]

    async def get_view(self, scope: Scope, view_id: str) -> models.SummaryView:
        """Return a view. Raises NotFound."""
        view = await self._store.load_view(scope, view_id)
        if view is None or not _reaches_view(scope, view):
            raise NotFound(f"Summary view {view_id} not found", field="view_id", hint="GET /v1/summary-views lists all")
        return view

    async def delete_view(self, scope: Scope, view_id: str) -> models.AckResponse:
        """Delete a view. A missing view is not an error. Raises Forbidden."""
        _whole_tenant(writing(scope))
        await self._store.drop_view(scope, view_id)
        return models.AckResponse(status="ok")

    async def run_partition(
        self, scope: Scope, view_id: str, body: models.RunSummaryViewPartitionRequest
    ) -> models.SummaryViewPartitionResult:
        """Compute and store a partition.

        Raises NotFound, UnsupportedRequest, BadInput, Forbidden, and Conflict if memories keep being deleted.
        """
        view = await self.get_view(writing(scope), view_id)
        group = check_group(view, body.group)
        if not _reaches_group(scope, group):
            raise access_denied("this group", "group")
        with carrying_out(Work(since=await self._erasures.now())):
            for _ in range(MOST_TRIES):
                partition = await self._summarizer.compute_partition(scope, view, group, seconds=self._settings.views.run_seconds)
                stored = await self._store.store_partitions(scope, view_id, [partition])
                if stored:
                    return partition.result
                if stored is False:
                    raise NotFound(f"Summary view {view_id} not found", field="view_id", hint="GET /v1/summary-views lists all")
        raise Conflict(MEMORIES_DELETED)

    async def read_partitions(
        self, scope: Scope, view_id: str, group_values: Mapping[str, str | None]
    ) -> Sequence[models.SummaryViewPartitionResult]:
        """Return the partitions that the caller may see, sorted by group. Raises NotFound.

        Groups must match `group_values`. None matches any value.
        """
        await self.get_view(scope, view_id)
        stored = await self._store.load_partitions(scope, view_id)
        given_values = {name: value for name, value in group_values.items() if value is not None}
        results = [partition.result for partition in stored.values() if given_values.items() <= partition.result.group.items()]
        reached = [result for result in results if _reaches_group(scope, result.group)]
        return sorted(reached, key=lambda result: sorted(result.group.items()))

    async def run_all_partitions(self, scope: Scope, view_id: str, body: models.RunSummaryViewRequest) -> models.Task:
        """Compute all partitions in the background. A task with the same id starts over.

        Raises NotFound or Forbidden.
        """
        _whole_tenant(writing(scope))
        await self.get_view(scope, view_id)
        task = models.Task(id=body.task_id or made_id(), type=models.TaskTypeEnum.SUMMARY_VIEW_FULL_RUN, view_id=view_id)
        await self._store.put_task(scope, task)
        await self._orders.place_orders(_order(scope, task))
        return task

    async def read_task(self, scope: Scope, task_id: str) -> models.Task:
        """Return a task. Its status is "failed" if the workers gave up. Raises NotFound."""
        task = await self._store.load_task(scope, task_id)
        if task is None or scope.limited:
            raise NotFound(f"Task {task_id} not found", field="task_id", hint="tasks are kept for 7 days: run the view again")
        unfinished = task.status in (models.TaskStatusEnum.PENDING, models.TaskStatusEnum.RUNNING)
        if unfinished and await self._orders.given_up(_order(scope, task)):
            return task.model_copy(
                update={"status": models.TaskStatusEnum.FAILED, "error_message": "the server stopped after too many attempts"}
            )
        return task


def _whole_tenant(scope: Scope) -> None:
    """Raise Forbidden for restricted callers."""
    if scope.limited:
        raise Forbidden(
            "summary views belong to the whole tenant: use credentials that are not limited to certain namespaces, users or agents"
        )


def _reaches_view(scope: Scope, view: models.SummaryView) -> bool:
    """True if the view groups by every field that restricts the caller, but filters by none."""
    limits = {"namespace": scope.namespaces, "user_id": scope.users}
    needed = {name for name, limit in limits.items() if limit is not None}
    return scope.agents is None and needed <= set(view.group_by) and not needed & set(view.filters)


def _reaches_group(scope: Scope, group: Mapping[str, str]) -> bool:
    return not scope.limited or (scope.agents is None and scope.reaches(group.get("namespace"), group.get("user_id")))


def _order(scope: Scope, task: models.Task) -> JobOrder:
    return JobOrder.of(scope, RUN_VIEW, view_id=task.view_id, task_id=task.id)
