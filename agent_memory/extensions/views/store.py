"""Store summary views, partitions and tasks in Redis."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from redis.asyncio import Redis

from agent_memory.foundation.core.scope import Scope
from agent_memory.foundation.storage.connection import read, redis_errors, write
from agent_memory.foundation.storage.erasures import Guard, guard_of, whole_tenant_guard
from agent_memory.foundation.storage.keyspace import Keys, digest
from agent_memory.foundation.storage.scripts import Script
from agent_memory_client.models import SummaryView, SummaryViewPartitionResult, Task

_TASK_SECONDS = 7 * 24 * 3600


class ViewKeys:
    def __init__(self, root: str) -> None:
        self.tenants = f"{root}svt"
        """The key of the set of tenants that have had views."""
        self._root = root

    def views(self, tenant: str) -> str:
        return f"{self._root}sv:{digest('views', tenant)}"

    def partitions(self, tenant: str, view_id: str) -> str:
        return f"{self._root}svp:{digest('view', tenant, view_id)}"


@dataclass(frozen=True, slots=True)
class Partition:
    """A computed partition, a fingerprint of its inputs, and the memories that it summarizes."""

    result: SummaryViewPartitionResult
    fingerprint: str
    mids: Sequence[str] = ()


def group_key(group: Mapping[str, str]) -> str:
    """Return a partition's name. The order of the fields does not matter."""
    return digest("group", *(part for item in sorted(group.items()) for part in item))


class ViewStore:
    def __init__(self, client: Redis, keys: Keys) -> None:
        self._client = client
        self._keys = keys
        self._view_keys = ViewKeys(keys.root)
        self._store = Script(client, "views/partitions_store")

    async def add_view(self, scope: Scope, view: SummaryView) -> bool:
        """Store a view. Return False if its id already exists."""
        views, tenants = self._view_keys.views(scope.tenant), self._view_keys.tenants
        fields = (view.id, view.model_dump_json())
        new, _ = await write(self._client, lambda pipe: (pipe.hsetnx(views, *fields), pipe.sadd(tenants, scope.tenant)), atomic=True)
        return bool(new)

    async def replace_view(self, scope: Scope, view: SummaryView) -> None:
        views = self._view_keys.views(scope.tenant)
        await write(self._client, lambda pipe: pipe.hset(views, view.id, view.model_dump_json()))

    async def add_partition(self, scope: Scope, view_id: str, partition: Partition) -> bool | None:
        """Store a partition.

        Return False if its group already has one, or None if its view is missing.
        """
        if await self.load_view(scope, view_id) is None:
            return None
        if group_key(partition.result.group) in await self.load_partitions(scope, view_id):
            return False
        return await self.store_partitions(scope, view_id, [partition]) or None

    async def load_view(self, scope: Scope, view_id: str) -> SummaryView | None:
        (raw,) = await read(self._client, lambda pipe: pipe.hget(self._view_keys.views(scope.tenant), view_id))
        return None if raw is None else SummaryView.model_validate_json(raw)

    async def count_views(self, scope: Scope) -> int:
        return int((await read(self._client, lambda pipe: pipe.hlen(self._view_keys.views(scope.tenant))))[0])

    async def load_views(self, scope: Scope) -> Sequence[SummaryView]:
        """Return all of the tenant's views, oldest first."""
        key = self._view_keys.views(scope.tenant)
        raw = (await read(self._client, lambda pipe: pipe.hvals(key)))[0]
        return sorted((SummaryView.model_validate_json(value) for value in raw), key=lambda view: view.id)

    async def drop_view(self, scope: Scope, view_id: str) -> bool:
        """Delete a view and its partitions. Return True if it existed."""
        views, partitions = self._view_keys.views(scope.tenant), self._view_keys.partitions(scope.tenant, view_id)
        existed, _ = await write(self._client, lambda pipe: (pipe.hdel(views, view_id), pipe.unlink(partitions)), atomic=True)
        return bool(existed)

    async def load_tenants(self) -> Sequence[str]:
        """Return all tenants that have or had views."""
        return sorted(name.decode() for name in (await read(self._client, lambda pipe: pipe.smembers(self._view_keys.tenants)))[0])

    async def store_partitions(self, scope: Scope, view_id: str, partitions: Iterable[Partition]) -> bool | None:
        """Store partitions.

        Return False if their view is missing, or None if a memory has been deleted since it was
        read. Raises ErasureUnderWay, and stores nothing, while a user whose memories they may
        contain is being erased.
        """
        items: list[str] = []
        guards: list[Guard] = []
        mids: list[str] = []
        for partition in partitions:
            body = {"f": partition.fingerprint, "r": partition.result.model_dump(mode="json")}
            guards.append(self._guard(scope, partition.result.group))
            mids += partition.mids
            items += [group_key(partition.result.group), json.dumps(body, ensure_ascii=False)]
        views, partitions_key = self._view_keys.views(scope.tenant), self._view_keys.partitions(scope.tenant, view_id)
        named = {"views": views, "partitions_key": partitions_key, "root": self._keys.root, "view_id": view_id}
        reply = int(await self._store(**named, guards=guards, mids=mids, partitions=items))
        return None if reply < 0 else reply > 0

    def _guard(self, scope: Scope, group: Mapping[str, str]) -> Guard:
        if "user_id" not in group:
            return whole_tenant_guard(self._keys.root, scope.tenant)
        return guard_of(self._keys.root, scope.tenant, group.get("namespace"), group["user_id"], group.get("session_id"))

    async def load_partitions(self, scope: Scope, view_id: str) -> Mapping[str, Partition]:
        """Return a view's stored partitions, keyed by `group_key`."""
        (raw,) = await read(self._client, lambda pipe: pipe.hgetall(self._view_keys.partitions(scope.tenant, view_id)))
        return {name.decode(): _decode(value) for name, value in raw.items()}

    async def drop_partitions(self, scope: Scope, view_id: str, names: Sequence[str]) -> int:
        """Delete partitions. Return how many existed."""
        if not names:
            return 0
        with redis_errors():
            return int(await self._client.hdel(self._view_keys.partitions(scope.tenant, view_id), *names))

    async def put_task(self, scope: Scope, task: Task) -> None:
        """Store a task for seven days, replacing any task with the same id."""
        with redis_errors():
            await self._client.set(self._keys.task(scope.tenant, task.id), task.model_dump_json(), ex=_TASK_SECONDS)

    async def load_task(self, scope: Scope, task_id: str) -> Task | None:
        (raw,) = await read(self._client, lambda pipe: pipe.get(self._keys.task(scope.tenant, task_id)))
        return None if raw is None else Task.model_validate_json(raw)


def _decode(raw: bytes) -> Partition:
    body = json.loads(raw)
    return Partition(SummaryViewPartitionResult.model_validate(body["r"]), body["f"])
