"""Files whose text is split into searchable passages."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, Field

from agent_memory_client.models._types import FreeText, Identifier, Instant, OptionalIdentifier
from agent_memory_client.models.memories import JsonObject

FileState: TypeAlias = Literal["queued", "ready", "failed"]
"""`queued`: a worker will read the file. `ready`: its passages are memories. `failed`: `reason` says why."""
FileName: TypeAlias = Annotated[FreeText, Field(min_length=1, max_length=255)]
"""A file's name, at most 255 characters."""


class StoredFile(BaseModel):
    """An uploaded file. The server stores its text but not the original file."""

    id: Identifier
    """The file's id, which is also the id of the session that stores its text."""
    name: FileName
    """The file's name. An upload with the same name replaces the file."""
    media_type: FreeText
    """The file's media type, such as `application/pdf`."""
    size: int
    """The number of bytes."""
    digest: str
    """The SHA-256 hash of the bytes."""
    user_id: OptionalIdentifier = None
    namespace: OptionalIdentifier = None
    agent_id: OptionalIdentifier = None
    state: FileState = "queued"
    """Whether the newest upload has been read. Until then, or if that fails, the previous upload's passages remain."""
    reason: str | None = None
    """Why the file could not be read."""
    operation_id: str | None = None
    """The operation that reads the file."""
    pages: int = 0
    """The number of pages. 1 for formats without pages."""
    passages: int = 0
    """The number of passages. Each is a memory, and its metadata has the `file_id`."""
    metadata: JsonObject = Field(default_factory=dict)
    """Data stored with each passage."""
    created_at: Instant
    """The time of the first upload."""
    updated_at: Instant
    """The time of the newest upload."""


class FileList(BaseModel):
    """A page of files, newest first."""

    files: list[StoredFile]
    """The files on this page."""
    total: int
    """The number of files that the owner has."""
