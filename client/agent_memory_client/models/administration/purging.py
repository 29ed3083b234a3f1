"""Deletion of memories by source."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from agent_memory_client.models._types import Identifier, JsonObject
from agent_memory_client.models.memories import SourceClass


class PurgeRequest(BaseModel):
    """The source of the memories to delete. Give at least one condition; all must match."""

    model_config = ConfigDict(extra="forbid")

    source_class: Annotated[list[SourceClass], Field(min_length=1, max_length=6)] | None = None
    """The kinds of source: `user`, `assistant`, `tool`, `import`, `inference` or `client`. A memory must match one of
    them."""
    session_id: Identifier | None = None
    """The session that the memory comes from."""
    agent_id: Identifier | None = None
    """The agent that wrote the memory, or that owns the session that the memory comes from."""
    import_source: Identifier | None = None
    """The `import_source` of the import that added the memory. Also deletes the sessions, blocks and files from this
    import, unless they have changed since."""
    unchanged: bool = False
    """With `import_source`: true keeps memories that have changed since, and those from continued sessions."""
    metadata: Annotated[JsonObject, Field(min_length=1)] | None = None
    """Keys and values that the memory's metadata must contain: `{"tool": "web"}`."""

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if self.unchanged and self.import_source is None:
            raise ValueError("unchanged needs import_source")
        if all(getattr(self, name) is None for name in type(self).model_fields if name != "unchanged"):
            raise ValueError("name a source: send source_class, session_id, agent_id, import_source or metadata")
        return self


class PurgeResponse(BaseModel):
    """The progress and result of a purge. A dry run reports what would be deleted."""

    status: Literal["ok", "pending"]
    """`ok` if the purge is done, `pending` while a worker is running it."""
    dry_run: bool
    """True for a dry run, which deletes nothing."""
    operation_id: str
    """The operation's id. The operation keeps the counts for 7 days."""
    counts: dict[str, int] | None = None
    """The counts, or null while the purge is pending. `matched`: deleted memories that came from the source.
    `inferred`: deleted memories that were made only from `matched` ones. `restored`: memories restored to their last
    clean content. `evidence`: deleted pieces of evidence. `proposals` and `summaries`: deleted proposals and summaries.
    `messages`: messages deleted from sessions. `contexts`: deleted session summaries. `sessions`, `blocks`: an import's
    deleted sessions and blocks. `files`: files deleted with all their passages. `unreadable`: records that remain
    because they could not be read; the operation lists them."""
    memory_ids: list[str] | None = None
    """In a dry run, the ids of up to 100 memories that the purge would delete."""
