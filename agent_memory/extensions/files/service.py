"""Upload, list, read and delete files."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import sha256
from types import MappingProxyType
from typing import Any, NamedTuple

from agent_memory.extensions.files.media_types import media_type_of
from agent_memory.extensions.files.passages import is_session_of_file
from agent_memory.extensions.files.store import FileRow, FileStore, may_reach, raw_of, ref_of
from agent_memory.features.jobs.operation_store import Mark
from agent_memory.features.jobs.order_store import JobOrder, OrderStore
from agent_memory.features.memories.service import MemoryService
from agent_memory.features.privacy.derived_memories import delete_memories_of
from agent_memory.features.sessions.store import SessionStore
from agent_memory.foundation.api.principals import permit_agent, place_of, resolve_name, writing
from agent_memory.foundation.core.errors import Conflict, NotFound
from agent_memory.foundation.core.feature import Services
from agent_memory.foundation.core.scope import Scope, SessionRef
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.foundation.storage.keyspace import digest
from agent_memory_client.models.features.files import FileList, StoredFile

READ_FILE = "read_file"
_TRIES = 16


class NewFile(NamedTuple):
    """An upload. `file_id` is None unless the caller chose one."""

    name: str
    data: bytes
    declared_type: str
    namespace: str | None
    user_id: str | None
    agent_id: str | None = None
    file_id: str | None = None
    metadata: Mapping[str, Any] = MappingProxyType({})


class FileService:
    def __init__(self, services: Services, store: FileStore) -> None:
        self._services = services
        self._store = store

    async def upload(self, scope: Scope, upload: NewFile) -> StoredFile:
        """Accept a file and queue a job to read it.

        If the owner already has a file with the same bytes, return that file. Raises Forbidden,
        Conflict, and the same errors as `media_type_of`.
        """
        self._services[MemoryService].require()
        namespace, user_id = place_of(writing(scope), upload.namespace, upload.user_id)
        agent_id, now = resolve_name("agent_id", scope.agents, upload.agent_id), datetime.now(UTC)
        new = StoredFile(
            id=upload.file_id or f"file-{digest('file', namespace, user_id, agent_id, upload.name)}",
            name=upload.name,
            media_type=media_type_of(upload.declared_type, upload.name, upload.data),
            size=len(upload.data),
            digest=sha256(upload.data).hexdigest(),
            user_id=user_id,
            namespace=namespace,
            agent_id=agent_id,
            metadata=dict(upload.metadata),
            created_at=now,
            updated_at=now,
        )
        for _ in range(_TRIES):
            row = await self._store.load(scope, ref_of(new))
            # If the bytes differ, replace this file, even if a file with another name has the new bytes.
            same = await self._same(scope, new) if row.file is None or row.file.digest == new.digest else None
            if same is not None:
                if same.state == "queued":  # Workers may have given up on the operation.
                    await self._services[OrderStore].place_orders(order_of(scope, same))
                return same
            await self._check_place(scope, new, row)
            former = row.file or new
            counts = {"created_at": former.created_at, "pages": former.pages, "passages": former.passages}
            order = order_of(scope, new)
            stored = new.model_copy(update={**counts, "operation_id": Mark(DueKind.ORDER, order.name).operation_id})
            if await self._store.swap(scope, ref_of(stored), row, stored, upload.data, order):
                return stored
        raise Conflict("the file is constantly being changed by other requests: try again")

    async def _same(self, scope: Scope, new: StoredFile) -> StoredFile | None:
        files = await self._store.list_files(scope, new.user_id)
        identity = (new.digest, new.namespace, new.agent_id)
        same = [file for file in files if (file.digest, file.namespace, file.agent_id) == identity]
        # If a request to forget has deleted all of a file's passages, read the file again.
        return next((file for file in same if file.state == "queued" or (file.state == "ready" and file.passages)), None)

    async def _check_place(self, scope: Scope, new: StoredFile, row: FileRow) -> None:
        if row.file is not None:
            permit_agent(scope, row.file.agent_id)
            if row.file.agent_id != new.agent_id:
                raise Conflict("the file belongs to another agent: choose another id", field="file_id")
        elif not await is_session_of_file(self._services[SessionStore], scope, ref_of(new), or_none=True):
            raise Conflict("a session has this id: choose another one", field="file_id")

    async def load_file(self, scope: Scope, ref: SessionRef) -> FileRow:
        """Return a file's row. Raises NotFound or Forbidden."""
        namespace, user_id = place_of(scope, ref.namespace, ref.user_id)
        row = await self._store.load(scope, SessionRef(ref.session_id, namespace, user_id))
        if row.file is None or not may_reach(scope, row.file):
            raise NotFound(f"there is no file {ref.session_id}", field="file_id")
        return row

    async def list_files(self, scope: Scope, namespace: str | None, user_id: str | None, offset: int, limit: int) -> FileList:
        """Return a page of a user's files.

        If `namespace` is None, include all namespaces that the caller may access.
        """
        if scope.namespaces is not None or namespace is not None:
            namespace, user_id = place_of(scope, namespace, user_id)
        else:
            user_id = resolve_name("user_id", scope.users, user_id)
        files = [file for file in await self._store.list_files(scope, user_id) if namespace in (None, file.namespace)]
        return FileList(files=files[offset : offset + limit], total=len(files))

    async def delete_file(self, scope: Scope, ref: SessionRef) -> None:
        """Delete a file and everything derived only from it. Raises NotFound or Forbidden."""
        for _ in range(_TRIES):
            row = await self.load_file(writing(scope), ref)
            assert row.file is not None
            # From now on, the worker does not store the file. Delete the record last, so that a retry can finish.
            deleted_file = row.file.model_copy(update={"state": "failed", "reason": "deleted", "operation_id": None})
            if deleted_file == row.file or await self._store.swap(scope, ref_of(deleted_file), row, deleted_file):
                row = FileRow(raw_of(deleted_file), deleted_file)
                await remove_derived(self._services, scope, ref_of(deleted_file))
                if await self._store.swap(scope, ref_of(deleted_file), row, None):
                    return
        raise Conflict("the file is constantly being changed by other requests: try again")


async def remove_derived(services: Services, scope: Scope, ref: SessionRef) -> None:
    """Delete a file's text, passages and facts. Idempotent."""
    sessions = services[SessionStore]
    await sessions.delete(scope, ref, only_work=True)
    await delete_memories_of(services, scope, ref)
    await sessions.delete(scope, ref)


def order_of(scope: Scope, file: StoredFile) -> JobOrder:
    """Return the order for reading an upload. Each version of a file has its own order."""
    version = f"{file.digest} {file.updated_at.timestamp()}"
    arguments = {"namespace": file.namespace, "user_id": file.user_id, "file_id": file.id, "version": version}
    return JobOrder(READ_FILE, scope.tenant, arguments, scope.namespaces, scope.users)
