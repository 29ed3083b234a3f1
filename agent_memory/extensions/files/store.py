"""Store file records, and uploaded bytes that workers have not read yet."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from redis.asyncio import Redis

from agent_memory.features.jobs.order_store import JobOrder, OrderStore
from agent_memory.foundation.core.feature import AgentOwner, Owner
from agent_memory.foundation.core.scope import Scope, SessionRef
from agent_memory.foundation.storage.connection import read
from agent_memory.foundation.storage.erasures import guard_of
from agent_memory.foundation.storage.keyspace import Keys, digest
from agent_memory.foundation.storage.scripts import Script, compact
from agent_memory_client.models.features.files import StoredFile

_BYTES_SECONDS = 7 * 24 * 3600
_READ_AT_ONCE = 2
_IMPORT_FIELD = "im"
_MOST_HOLDERS = 100


@dataclass(frozen=True, slots=True)
class FileRow:
    """A stored file. `raw` is its record, or "" if there is none."""

    raw: str
    file: StoredFile | None = None

    @property
    def imported(self) -> str | None:
        """The import that stored the record, or None if the record has changed since."""
        return json.loads(self.raw or "{}").get(_IMPORT_FIELD)


def ref_of(file: StoredFile) -> SessionRef:
    """Return the session that stores the file's text."""
    return SessionRef(file.id, file.namespace, file.user_id)


class FileStore:
    def __init__(self, client: Redis, keys: Keys, orders: OrderStore) -> None:
        self._client = client
        self._orders = orders
        self._root = keys.root
        self._swap = Script(client, "files/file_swap")
        self.reading = asyncio.Semaphore(_READ_AT_ONCE)
        """Limits how many reader processes run at the same time."""

    def _files(self, scope: Scope, user_id: str | None) -> str:
        return f"{self._root}fi:{digest('files', scope.tenant, user_id)}"

    def _users(self, scope: Scope) -> str:
        return f"{self._root}fiu:{digest('files', scope.tenant)}"

    def _holders(self, scope: Scope, ref: SessionRef) -> str:
        return f"{self._root}fii:{digest('file', scope.tenant, ref.namespace, ref.session_id)}"

    def _bytes(self, scope: Scope, ref: SessionRef) -> str:
        return f"{self._root}fib:{digest('file', scope.tenant, ref.namespace, ref.user_id, ref.session_id)}"

    async def load(self, scope: Scope, ref: SessionRef) -> FileRow:
        raw = (await read(self._client, lambda pipe: pipe.hget(self._files(scope, ref.user_id), _field(ref))))[0]
        return FileRow("") if raw is None else FileRow(raw.decode(), StoredFile.model_validate_json(raw))

    async def swap(
        self,
        scope: Scope,
        ref: SessionRef,
        before: FileRow,
        after: StoredFile | None,
        data: bytes | None = None,
        order: JobOrder | None = None,
        imported: str | None = None,
    ) -> bool:
        """Store a record, or delete it if `after` is None. Return False if `before` is outdated.

        Delete the file's bytes if `data` is None. Place `order` in the same atomic step. Raises
        ErasureUnderWay.
        """
        agent_id = None if after is None else after.agent_id
        done = await self._swap(
            files=self._files(scope, ref.user_id),
            users=self._users(scope),
            holders=self._holders(scope, ref),
            bytes=self._bytes(scope, ref),
            file=_field(ref),
            expected=before.raw,
            value="" if after is None else raw_of(after, imported),
            user=json.dumps(ref.user_id),
            guard=guard_of(self._root, scope.tenant, ref.namespace, ref.user_id, ref.session_id, agent_id),
            has_data=data is not None,
            seconds=_BYTES_SECONDS,
            data=data or b"",
            **self._orders.placement(order),
        )
        return bool(done)

    async def find_only(self, scope: Scope, ref: SessionRef) -> StoredFile | None:
        """Return the only file with this id and namespace that the caller may access, or None."""
        holders = (await read(self._client, lambda pipe: pipe.srandmember(self._holders(scope, ref), _MOST_HOLDERS)))[0]
        rows = [await self.load(scope, replace(ref, user_id=json.loads(raw))) for raw in holders]
        files = [row.file for row in rows if row.file is not None and may_reach(scope, row.file)]
        return files[0] if len(files) == 1 else None

    async def load_bytes(self, scope: Scope, ref: SessionRef) -> bytes | None:
        return (await read(self._client, lambda pipe: pipe.get(self._bytes(scope, ref))))[0]

    async def list_files(self, scope: Scope, user_id: str | None) -> list[StoredFile]:
        """Return a user's readable files, newest first. None means files that have no user."""
        values = (await read(self._client, lambda pipe: pipe.hvals(self._files(scope, user_id))))[0]
        files = [StoredFile.model_validate_json(raw) for raw in values]
        return sorted((file for file in files if may_reach(scope, file)), key=lambda file: (file.updated_at, file.id), reverse=True)

    async def list_of(self, scope: Scope, owner: Owner | AgentOwner) -> list[StoredFile]:
        users: Sequence[str | None]
        if isinstance(owner, Owner):
            users = [owner.user_id]
        else:
            users = [json.loads(raw) for raw in (await read(self._client, lambda pipe: pipe.smembers(self._users(scope))))[0]]
        return [
            file
            for user_id in users
            for file in await self.list_files(scope, user_id)
            if owner.namespace in (None, file.namespace) and (isinstance(owner, Owner) or file.agent_id == owner.agent_id)
        ]


def may_reach(scope: Scope, file: StoredFile) -> bool:
    return scope.reaches(file.namespace, file.user_id) and (scope.agents is None or file.agent_id in scope.agents)


def raw_of(file: StoredFile, imported: str | None = None) -> str:
    raw = file.model_dump_json()
    return raw if imported is None else compact(json.loads(raw) | {_IMPORT_FIELD: imported})


def _field(ref: SessionRef) -> str:
    return digest("file", ref.namespace, ref.session_id)
