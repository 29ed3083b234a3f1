"""Delete memories by their source."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from agent_memory_client.models._types import Identifier, JsonObject
from agent_memory_client.models.memories import SourceClass


class PurgeRequest(BaseModel):
    """A source whose memories to delete. A memory must match all given conditions. Give at least one."""

    model_config = ConfigDict(extra="forbid")

    source_class: Annotated[list[SourceClass], Field(min_length=1, max_length=6)] | None = None
    """The kinds of source: `user`, `assistant`, `tool`, `import`, `inference` or `client`. One of them must match."""
    session_id: Identifier | None = None
    """The session that the memory comes from."""
    agent_id: Identifier | None = None
    """The agent that wrote the memory."""
    import_source: Identifier | None = None
    """The `import_source` of the import that brought the memory."""
    metadata: Annotated[JsonObject, Field(min_length=1)] | None = None
    """Keys and values that the memory's metadata must contain: `{"tool": "web"}`."""

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if all(getattr(self, name) is None for name in type(self).model_fields):
            raise ValueError("name a source: send source_class, session_id, agent_id, import_source or metadata")
        return self


class PurgeResponse(BaseModel):
    """The progress and the result of a purge. A dry run shows the result that a purge would have."""

    status: Literal["ok", "pending"]
    """`ok` if the purge is done, `pending` while a worker runs it."""
    dry_run: bool
    """True for a dry run, which deletes nothing."""
    operation_id: str
    """The id of the operation. It keeps the counts for 7 days."""
    counts: dict[str, int] | None = None
    """The counts; null while the purge is pending. `matched`: deleted memories of the source. `inferred`: deleted
    memories made only from those. `restored`: memories set back to their last clean content. `evidence`: deleted pieces
    of evidence. `proposals` and `summaries`: deleted ones. `messages`: messages deleted from sessions. `contexts`:
    deleted summaries of sessions. `unreadable`: records that stay because they could not be read; the operation names
    them."""
    memory_ids: list[str] | None = None
    """In a dry run, the ids of up to 100 memories that the purge would delete."""
