"""Purging memories by their source."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from agent_memory_client.models._types import Identifier, JsonObject
from agent_memory_client.models.memories import SourceClass


class PurgeRequest(BaseModel):
    """A source whose memories are to go; of several conditions all must hold.

    `source_class`: who said or made it. `session_id`: the session that it comes from. `agent_id`: the agent that wrote it.
    `import_source`: the name that an import was given ("import" where it was given none). `metadata`: values that the memory's own metadata
    have, such as {"tool": "web"}.
    """

    model_config = ConfigDict(extra="forbid")

    source_class: Annotated[list[SourceClass], Field(min_length=1, max_length=6)] | None = None
    session_id: Identifier | None = None
    agent_id: Identifier | None = None
    import_source: Identifier | None = None
    metadata: Annotated[JsonObject, Field(min_length=1)] | None = None

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if all(getattr(self, name) is None for name in type(self).model_fields):
            raise ValueError("say which source is meant: source_class, session_id, agent_id, import_source or metadata")
        return self


class PurgeResponse(BaseModel):
    """How far a purge is. `counts`, once it is done (`ok`), or in a dry run what they would be:

    `matched` memories of the source and `inferred` ones made of nothing else are gone; `restored` ones have the last content back that
    does not come from it; `evidence` counts the pieces that others lost; `proposals` and `summaries` those that held something of it;
    `messages` those that were struck out of sessions, and `contexts` the sessions' summaries that may have told of them.
    `memory_ids` names, in a dry run, up to 100 memories that would go.
    """

    status: Literal["ok", "pending"]
    dry_run: bool
    operation_id: str
    counts: dict[str, int] | None = None
    memory_ids: list[str] | None = None
