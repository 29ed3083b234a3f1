"""Handle documents that were uploaded as files."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

from fastapi import Request
from pydantic import Json
from python_multipart.exceptions import MultipartParseError
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser

from agent_memory.extensions.files.service import FileService, NewFile
from agent_memory.extensions.files.store import FileStore
from agent_memory.foundation.api.body import read_body
from agent_memory.foundation.core.errors import BadInput, NotFound, NotSupported
from agent_memory.foundation.core.scope import SessionRef
from agent_memory.interfaces.compat.supermemory.answers import TAGS, file_answer
from agent_memory.interfaces.compat.supermemory.containers import ContainerService
from agent_memory.interfaces.compat.supermemory.requests import Context, DocumentChanges, Metadata, Tagged
from agent_memory.interfaces.compat.supermemory.service import KeepContext
from agent_memory_client.models.features.files import FileName, StoredFile

_MOST_FIELDS = 32
_FIELD_BYTES = 64 * 1024


class Upload(Tagged):
    """The form fields of a file upload, except for the file itself."""

    name: FileName
    metadata: Json[Metadata] | None = None
    mime_type: str | None = None
    supporting_context: Context | None = None
    date: str | None = None


class FileDocuments(ContainerService):
    """Operations on containers, and on documents that were uploaded as files."""

    async def upload(self, upload: Upload, data: bytes, media_type: str, keep_context: KeepContext | None) -> dict[str, Any]:
        """Store a file for a worker to read.

        Replaces any file in the container that has the same name.
        """
        if upload.date is not None:
            raise NotSupported("documents.file: date")
        metadata = {**(upload.metadata or {}), **({TAGS: others} if (others := upload.tags()[1:]) else {})}
        new = NewFile(upload.name, data, upload.mime_type or media_type, self._namespace, upload.user, metadata=metadata)
        stored = await self._services[FileService].upload(self._scope, new)
        if keep_context is not None:
            await keep_context()
        return {"id": stored.id, "status": "queued" if stored.state == "queued" else "done"}

    async def get(self, name: str, user: str | None = None) -> dict[str, Any]:
        file = await self._file(name, user)
        if file is None:
            return await super().get(name, user)
        session = await self._find(name, file.user_id)
        return file_answer(file, session)

    async def change(
        self, name: str, changes: DocumentChanges, user: str | None = None, keep_context: KeepContext | None = None
    ) -> dict[str, Any]:
        if await self._file(name, user) is not None:
            raise NotSupported("documents.update of an uploaded file: upload it again")
        return await super().change(name, changes, user, keep_context)

    async def delete(self, name: str, user: str | None = None) -> None:
        file = await self._file(name, user)
        if file is None:
            await super().delete(name, user)
        else:
            await self._services[FileService].delete_file(self._scope, SessionRef(file.id, file.namespace, file.user_id))

    async def _delete_all(self, scope: Any, tag: str) -> int:
        files, deleted = self._services[FileService], 0
        while listed := (await files.list_files(scope, self._namespace, tag, 0, 100)).files:
            for file in listed:
                await files.delete_file(scope, SessionRef(file.id, file.namespace, file.user_id))
            deleted += len(listed)
        return deleted + await super()._delete_all(scope, tag)

    async def _file(self, name: str, user: str | None) -> StoredFile | None:
        """Return the file with this id, or None.

        If no user is given, return None when several files share this id.
        """
        store, ref = self._services[FileStore], SessionRef(name, self._namespace, user)
        if user is None and self._scope.users is None:
            return await store.find_only(self._scope, ref)
        try:
            return (await self._services[FileService].load_file(self._scope, ref)).file
        except NotFound:
            return None


async def read_upload(request: Request) -> tuple[dict[str, Any], bytes, str]:
    """Return the fields of a multipart body, the file's bytes, and its media type.

    Raises BadInput or any error from `read_body`.
    """
    body = await read_body(request.scope, request.receive, None)

    async def stream() -> AsyncGenerator[bytes]:
        yield body

    try:
        parser = MultiPartParser(request.headers, stream(), max_files=1, max_fields=_MOST_FIELDS, max_part_size=_FIELD_BYTES)
        form = await parser.parse()
    except (MultiPartException, MultipartParseError, KeyError, ValueError):
        raise BadInput("send the file as multipart/form-data", field="file") from None
    file = form.get("file")
    if not isinstance(file, UploadFile):
        raise BadInput("must be a file in multipart/form-data", field="file")
    fields: dict[str, Any] = {name: value for name, value in form.items() if isinstance(value, str)}
    data = await file.read()
    await form.close()
    return {**fields, "name": file.filename or "file.txt"}, data, file.content_type or ""
