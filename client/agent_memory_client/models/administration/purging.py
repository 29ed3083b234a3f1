"""Purging memories by their source."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from agent_memory_client.models._types import Identifier, JsonObject
from agent_memory_client.models.memories import SourceClass


class PurgeRequest(BaseModel):
    """A source whose memories are to be deleted; all given conditions must hold, and at least one is required."""

    model_config = ConfigDict(extra="forbid")

    source_class: Annotated[list[SourceClass], Field(min_length=1, max_length=6)] | None = None
    """Who said or made it: `user`, `assistant`, `tool`, `import`, `inference` or `client`; any of these."""
    session_id: Identifier | None = None
    """The session that it comes from."""
    agent_id: Identifier | None = None
    """The agent that wrote it."""
    import_source: Identifier | None = None
    """The name that the import was given as `import_source`."""
    metadata: Annotated[JsonObject, Field(min_length=1)] | None = None
    """Values that the memory's own metadata have: `{"tool": "web"}`."""

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if all(getattr(self, name) is None for name in type(self).model_fields):
            raise ValueError("say which source is meant: source_class, session_id, agent_id, import_source or metadata")
        return self


class PurgeResponse(BaseModel):
    """How far a purge is, and what it did; of a dry run, what it would do."""

    status: Literal["ok", "pending"]
    """`ok` when it is done, `pending` while a worker is at it."""
    dry_run: bool
    """Whether this is only a trial that deletes nothing."""
    operation_id: str
    """The operation that keeps the counts, for 7 days."""
    counts: dict[str, int] | None = None
    """What was done: memories of the source that are gone (`matched`), with those made of nothing else (`inferred`);
    memories that have their last clean content back (`restored`) or lost a piece of `evidence`; `proposals` and
    `summaries` that are gone, `messages` that were struck out of sessions, and their summaries (`contexts`). Records
    that could not be read stay, and are counted as `unreadable`; the operation names them. Null while it is pending."""
    memory_ids: list[str] | None = None
    """In a dry run, up to 100 memories that would go."""
