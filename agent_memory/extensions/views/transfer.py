"""Export, import, erase and purge the partitions of summary views."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Collection, Mapping
from typing import Annotated

from pydantic import BaseModel, Field

from agent_memory.extensions.views.filters import check_group, check_view, users_named, without_user
from agent_memory.extensions.views.service import MAX_VIEWS
from agent_memory.extensions.views.store import Partition, ViewStore, group_key
from agent_memory.foundation.core.errors import BadInput
from agent_memory.foundation.core.feature import ExportLine, Group, Owner, RestoreTarget
from agent_memory.foundation.core.input.validation import validated
from agent_memory.foundation.core.permissions import access_denied
from agent_memory.foundation.core.scope import Scope, SessionRef
from agent_memory_client.models import MemoryTypeEnum, SummaryView, SummaryViewPartitionResult

_NO_VIEW = "its summary view does not exist here"


class _SummaryLine(BaseModel):
    """A partition in an export.

    In an export of an entire store, a line can contain a view alone. In other exports, the
    partition's group must specify one user.
    """

    view: SummaryView | None = None
    partition: SummaryViewPartitionResult | None = None
    fingerprint: Annotated[str, Field(max_length=200)] = ""


class ViewTransfer:
    kinds = ("summary",)

    def __init__(self, store: ViewStore) -> None:
        self._store = store

    async def export_lines(self, scope: Scope, owner: Owner) -> AsyncIterator[ExportLine]:
        """Yield the partitions that summarize only this user's memories, each with its view."""
        for view in () if scope.agents is not None else await self._store.load_views(scope):
            for partition in (await self._store.load_partitions(scope, view.id)).values():
                group = partition.result.group
                owned = group.get("user_id") == owner.user_id and owner.namespace in (None, group.get("namespace"))
                if owned and scope.reaches(group.get("namespace"), group.get("user_id")):
                    # Filters by user may name other users, so such a view is not exported.
                    exported_view = None if scope.limited or "user_id" in view.filters else view.model_dump(mode="json")
                    result = partition.result.model_dump(mode="json")
                    yield {"kind": "summary", "view": exported_view, "partition": result, "fingerprint": partition.fingerprint}

    async def restore_line(self, scope: Scope, target: RestoreTarget, line: ExportLine) -> str:
        """Store a partition and its view. Raises BadInput, Forbidden or UnsupportedRequest.

        Return "new", or "same" if the group already has a partition.
        """
        read = validated(_SummaryLine, line)
        result = read.partition
        if result is None:
            return "new" if await self._add_view(scope, read.view) else "same"
        namespace = result.group.get("namespace")
        values = result.group | ({"namespace": target.namespace(namespace)} if namespace else {})
        if target.user_id:
            values["user_id"] = target.user_id
            if "user_id" not in result.group or not scope.reaches(values.get("namespace"), target.user_id) or scope.agents is not None:
                raise access_denied("this group", "group")
        group = {name: value for name, value in values.items() if value is not None}
        view = await self._view(scope, result.view_id, read.view, group)
        check_group(view, group)
        fingerprint = "" if target.moved(namespace) else read.fingerprint
        added = await self._store.add_partition(scope, view.id, Partition(result.model_copy(update={"group": group}), fingerprint))
        return "new" if added else "same"

    async def _view(self, scope: Scope, view_id: str, exported: SummaryView | None, group: Mapping[str, str]) -> SummaryView:
        view = await self._store.load_view(scope, view_id)
        if view is not None:
            return view
        if exported is None or exported.id != view_id:
            raise BadInput(_NO_VIEW, field="view")
        check_group(exported, group)
        await self._add_view(scope, exported)
        return exported

    async def _add_view(self, scope: Scope, view: SummaryView | None) -> bool:
        """Store a view. Return False if it already exists. Raises BadInput or UnsupportedRequest."""
        if view is None or scope.limited:
            raise BadInput(_NO_VIEW, field="view")
        check_view(view)
        if await self._store.count_views(scope) >= MAX_VIEWS:
            raise BadInput(f"there are already {MAX_VIEWS} views, the maximum: delete some first", field="view")
        return await self._store.add_view(scope, view)

    async def erase_owner(self, scope: Scope, owner: Owner) -> Counter[str]:
        """Remove the user from views.

        Delete views of only this user, and partitions that may mention the user.
        """
        counts: Counter[str] = Counter()
        for view in await self._store.load_views(scope):
            if owner.namespace is None and owner.user_id in users_named(view.filters):
                filters = without_user(view.filters, owner.user_id)
                if filters is None:
                    counts["views"] += int(await self._store.drop_view(scope, view.id))
                    continue
                await self._store.replace_view(scope, view.model_copy(update={"filters": filters}))
            stored = await self._store.load_partitions(scope, view.id)
            names = [name for name, partition in stored.items() if _may_tell_of(partition.result.group, owner)]
            await self._store.drop_partitions(scope, view.id, names)
            counts["summaries"] += len(names)
        return counts

    async def purge_groups(self, scope: Scope, groups: Collection[Group], *, dry_run: bool) -> Counter[str]:
        """Delete partitions that may summarize these groups, and return the count.

        A dry run only counts.
        """
        counts: Counter[str] = Counter()
        for view in await self._store.load_views(scope) if groups else ():
            names = sorted({group_key(values) for group in groups if (values := _partition_group(view, group)) is not None})
            if dry_run:
                counts["summaries"] += len((await self._store.load_partitions(scope, view.id)).keys() & names)
            else:
                counts["summaries"] += await self._store.drop_partitions(scope, view.id, names)
        return counts

    async def erase_session(self, scope: Scope, session: SessionRef) -> Counter[str]:
        """Delete the partitions that may summarize this session's memories."""
        groups = [Group(session.namespace, session.user_id, session.session_id, str(kind)) for kind in MemoryTypeEnum]
        return await self.purge_groups(scope, groups, dry_run=False)

    async def follow_deletion(self, scope: Scope, groups: Collection[Group]) -> None:
        await self.purge_groups(scope, groups, dry_run=False)


def _may_tell_of(group: Mapping[str, str], owner: Owner) -> bool:
    return group.get("user_id", owner.user_id) == owner.user_id and owner.namespace in (None, group.get("namespace", owner.namespace))


def _partition_group(view: SummaryView, memories: Group) -> dict[str, str] | None:
    """Return the group of the partition that may summarize these memories, or None if there is none."""
    values = {name: value for name, value in memories._asdict().items() if name in view.group_by and value is not None}
    return values if len(values) == len(view.group_by) else None
