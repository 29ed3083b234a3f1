"""Working memory: a session as it is written and read, and the list of sessions."""

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
from agent_memory_client.models.memories import MemoryStrategyConfig, SessionMemory
from agent_memory_client.models.messages import MemoryMessage


class UpdateWorkingMemory(BaseModel):
    """A session to store under the id in the path; a `session_id` in the body is ignored.

    `ttl_seconds` None keeps the session until it is deleted; 0 or less lets it expire at once.
    """

    messages: list[MemoryMessage] = Field(default_factory=list[MemoryMessage])
    memories: list[SessionMemory] = Field(default_factory=list[SessionMemory])
    data: JsonObject | None = None
    context: FreeText | None = None
    user_id: OptionalIdentifier = None
    tokens: Annotated[int, Field(ge=0, le=MAX_COUNT)] = 0
    namespace: OptionalIdentifier = None
    long_term_memory_strategy: MemoryStrategyConfig = Field(default_factory=MemoryStrategyConfig)
    ttl_seconds: Annotated[int, Field(ge=-MAX_TTL_SECONDS, le=MAX_TTL_SECONDS)] | None = None
    last_accessed: Instant = Field(default_factory=now)
    created_at: Instant = Field(default_factory=now)
    updated_at: Instant = Field(default_factory=now)


class WorkingMemory(UpdateWorkingMemory):
    """A session with its id, as programs hold it."""

    session_id: SessionIdentifier


class WorkingMemoryResponse(WorkingMemory):
    """A stored session.

    The percentages (0 to 100) are None unless a model or a context window was named. `new_session` and `unsaved` are never
    sent by this server; programs written for older ones may read them.
    """

    context_percentage_total_used: float | None = None
    context_percentage_until_summarization: float | None = None
    new_session: SkipJsonSchema[bool | None] = Field(default=None, exclude=True)
    unsaved: SkipJsonSchema[bool | None] = Field(default=None, exclude=True)


class UpdateDataRequest(BaseModel):
    """A JSON merge patch (RFC 7396) for a session's `data`: objects are merged, null removes a key, anything else replaces."""

    data: JsonObject
    namespace: OptionalIdentifier = None
    user_id: OptionalIdentifier = None


class WorkingMemoryRequest(BaseModel):
    """Which session a prompt is made from, and how large it may be. Any model name is accepted."""

    session_id: SessionIdentifier
    namespace: OptionalIdentifier = None
    user_id: OptionalIdentifier = None
    model_name: FreeText | None = None
    context_window_max: WindowTokens | None = None
    long_term_memory_strategy: MemoryStrategyConfig | None = None


class SessionListResponse(BaseModel):
    """A page of session ids; `total` counts all that match."""

    sessions: list[str]
    total: int


class HealthCheckResponse(BaseModel):
    """The process answers; `now` is its clock in epoch milliseconds."""

    now: int
