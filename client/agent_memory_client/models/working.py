"""Sessions as they are written and read, and lists of sessions."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field
from pydantic.json_schema import SkipJsonSchema

from agent_memory_client.models._types import (
    MAX_COUNT,
    MAX_TTL_SECONDS,
    FreeText,
    Instant,
    JsonObject,
    OptionalIdentifier,
    SessionIdentifier,
    WindowTokens,
    now,
)
from agent_memory_client.models.memories import Absent, MemoryStrategyConfig, SessionMemory
from agent_memory_client.models.messages import MemoryMessage


class UpdateWorkingMemory(BaseModel):
    """A session to store under the id in the path; a `session_id` in the body is ignored."""

    messages: list[MemoryMessage] = Field(default_factory=list[MemoryMessage])
    """The conversation, oldest first, all of it: it takes the place of what was stored."""
    memories: list[SessionMemory] = Field(default_factory=list[SessionMemory])
    """Facts that are to become long-term memories."""
    data: JsonObject | None = None
    """Any JSON object of the caller's own that belongs to the session."""
    context: FreeText | None = None
    """The summary of what came before the messages."""
    user_id: OptionalIdentifier = None
    tokens: Annotated[int, Field(ge=0, le=MAX_COUNT)] = 0
    """A count of tokens of the caller's own, which is given back as it is."""
    namespace: OptionalIdentifier = None
    """The session's namespace, such as an application's name; null for none."""
    agent_id: OptionalIdentifier = Absent
    """The agent that talks in the session: prompts of the session show its memory blocks. Left out when there is none."""
    long_term_memory_strategy: MemoryStrategyConfig = Field(default_factory=MemoryStrategyConfig)
    """How long-term memories are made of the session's messages."""
    ttl_seconds: Annotated[int, Field(ge=-MAX_TTL_SECONDS, le=MAX_TTL_SECONDS)] | None = None
    """After how many seconds without a write the session ends; null keeps it until it is deleted, 0 or less ends it at
    once."""
    last_accessed: Instant = Field(default_factory=now)
    """When the session was last read or written."""
    created_at: Instant = Field(default_factory=now)
    """When the session was made, now when not given."""
    updated_at: Instant = Field(default_factory=now)
    """When the session was last written."""


class WorkingMemory(UpdateWorkingMemory):
    """A session with its id, as programs hold it."""

    session_id: SessionIdentifier
    """The session's id, without `/`."""


class WorkingMemoryResponse(WorkingMemory):
    """A stored session. This server never sends `new_session` and `unsaved`, which older programs may read."""

    refused_memories: dict[str, str] | None = Absent
    """Why some of its memories did not become long-term memories, by their ids; left out when there are none."""
    context_percentage_total_used: float | None = None
    """How much of the context window its messages fill, from 0 to 100; null unless a model or a window was named."""
    context_percentage_until_summarization: float | None = None
    """How near it is to being summarized, from 0 to 100; null unless a model or a window was named."""
    notices: list[str] | None = Absent
    new_session: SkipJsonSchema[bool | None] = Field(default=None, exclude=True)
    unsaved: SkipJsonSchema[bool | None] = Field(default=None, exclude=True)


class UpdateDataRequest(BaseModel):
    """Changes of a session's data."""

    data: JsonObject
    """A JSON merge patch (RFC 7396) of the session's data: objects are merged, null removes a key, anything else
    replaces."""
    namespace: OptionalIdentifier = None
    user_id: OptionalIdentifier = None


class WorkingMemoryRequest(BaseModel):
    """Which session a prompt is made from, and how large it may be. Any model name is accepted."""

    session_id: SessionIdentifier
    namespace: OptionalIdentifier = None
    user_id: OptionalIdentifier = None
    agent_id: OptionalIdentifier = None
    """The agent whose memory blocks the prompt shows; the session's own, if it has one, when not given."""
    model_name: FreeText | None = None
    """The model that the prompt is for, whose context window bounds it; any name."""
    context_window_max: WindowTokens | None = None
    """That window in tokens; beats `model_name`."""
    long_term_memory_strategy: MemoryStrategyConfig | None = None
    """Accepted and not used: a prompt makes no memories."""


class SessionIdentity(BaseModel):
    """A session's id, and whose it is."""

    session_id: str
    namespace: str | None = None
    user_id: str | None = None


class SessionListResponse(BaseModel):
    """A page of session ids."""

    sessions: list[str]
    """The sessions' ids."""
    total: int
    identities: list[SessionIdentity] | None = Absent
    """Whose the sessions are, in the same order; only if the request asks for it."""


class HealthCheckResponse(BaseModel):
    """The process answers; `now` is its clock in epoch milliseconds."""

    now: int
    """The process' clock, in milliseconds since 1970 UTC."""
