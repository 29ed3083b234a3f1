"""Files whose text is split into passages for searches and prompts."""

from __future__ import annotations

from agent_memory_client._wire.requests import Call, query, segment
from agent_memory_client.models import AckResponse
from agent_memory_client.models.features.files import FileList, StoredFile
from agent_memory_client.resources.base import Resource

_PATH = "/v1/files"


class Files(Resource):
    """Upload, list, read and delete text, Markdown, HTML, PDF and DOCX files."""

    async def upload(
        self,
        name: str,
        data: bytes,
        *,
        media_type: str | None = None,
        file_id: str | None = None,
        namespace: str | None = None,
        user_id: str | None = None,
        agent_id: str | None = None,
    ) -> StoredFile:
        """Upload a file. A worker processes it in the background.

        To track progress, pass `operation_id` to `jobs.get`. Uploading the same file again changes
        nothing. A different file with the same name or `file_id` replaces the existing one. If
        `media_type` is None, the file type is determined by the extension of `name`.
        """
        params = query(name=name, file_id=file_id, agent_id=agent_id, **self._scope(namespace, user_id))
        headers = {"Content-Type": media_type or "application/octet-stream"}
        return await self._read(StoredFile, Call("POST", _PATH, params, lines=data, headers=headers))

    async def list(self, *, limit: int = 20, offset: int = 0, namespace: str | None = None, user_id: str | None = None) -> FileList:
        """Return a page of a user's files, newest first."""
        return await self._read(FileList, Call("GET", _PATH, query(limit=limit, offset=offset, **self._scope(namespace, user_id))))

    async def get(self, file_id: str, *, namespace: str | None = None, user_id: str | None = None) -> StoredFile:
        """Return a file's state and counts. `reason` explains a failure.

        Raises MemoryNotFoundError.
        """
        return await self._read(StoredFile, Call("GET", _path(file_id), query(**self._scope(namespace, user_id))))

    async def delete(self, file_id: str, *, namespace: str | None = None, user_id: str | None = None) -> AckResponse:
        """Delete a file, its passages, and facts that came only from it.

        Raises MemoryNotFoundError.
        """
        return await self._read(AckResponse, Call("DELETE", _path(file_id), query(**self._scope(namespace, user_id))))


def _path(file_id: str) -> str:
    return f"{_PATH}/{segment('file_id', file_id)}"
