"""Requests and responses for sessions and lists of sessions."""

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
    """A session to store. The id in the path is used, and `session_id` in the body is ignored."""

    messages: list[MemoryMessage] = Field(default_factory=list[MemoryMessage])
    """The whole conversation, oldest first. It replaces the stored messages."""
    memories: list[SessionMemory] = Field(default_factory=list[SessionMemory])
    """Facts for the server to store as long-term memories."""
    data: JsonObject | None = None
    """Your own data for the session, as a JSON object."""
    context: FreeText | None = None
    """The summary of the conversation that precedes the messages."""
    user_id: OptionalIdentifier = None
    tokens: Annotated[int, Field(ge=0, le=MAX_COUNT)] = 0
    """Your own token count. The server returns it unchanged."""
    namespace: OptionalIdentifier = None
    """The session's namespace, such as an application's name. Null means no namespace."""
    agent_id: OptionalIdentifier = Absent
    """The session's agent. Prompts for the session show the agent's memory blocks. Omitted if there is no agent."""
    long_term_memory_strategy: MemoryStrategyConfig = Field(default_factory=MemoryStrategyConfig)
    """How the server creates long-term memories from the session's messages."""
    ttl_seconds: Annotated[int, Field(ge=-MAX_TTL_SECONDS, le=MAX_TTL_SECONDS)] | None = None
    """The session expires this many seconds after its last write. Null means that it never expires. 0 or less means
    that it expires immediately."""
    last_accessed: Instant = Field(default_factory=now)
    """The time when the session was last read or written."""
    created_at: Instant = Field(default_factory=now)
    """The time when the session was created. Default: now."""
    updated_at: Instant = Field(default_factory=now)
    """The time when the session was last written."""


class WorkingMemory(UpdateWorkingMemory):
    """A session with its id."""

    session_id: SessionIdentifier
    """The session's id, without `/`."""


class WorkingMemoryResponse(WorkingMemory):
    """A stored session.

    Older clients may read `new_session` and `unsaved`, which this server never sends.
    """

    refused_memories: dict[str, str] | None = Absent
    """Why some of the session's memories did not become long-term memories, by memory id. Omitted if there are no such
    memories."""
    context_percentage_total_used: float | None = None
    """The share of the context window that the messages fill, from 0 to 100 percent. Null if the request has no model
    or window."""
    context_percentage_until_summarization: float | None = None
    """How close the session is to its next summary, from 0 to 100 percent. Null if the request has no model or
    window."""
    notices: list[str] | None = Absent
    new_session: SkipJsonSchema[bool | None] = Field(default=None, exclude=True)
    unsaved: SkipJsonSchema[bool | None] = Field(default=None, exclude=True)


class UpdateDataRequest(BaseModel):
    """Changes to the `data` of a session."""

    data: JsonObject
    """A JSON merge patch (RFC 7396) for the session's data. Objects are merged, null removes a key, and other values
    replace the stored ones."""
    namespace: OptionalIdentifier = None
    user_id: OptionalIdentifier = None


class WorkingMemoryRequest(BaseModel):
    """The session for a prompt, and the prompt's size. Any model name is accepted."""

    session_id: SessionIdentifier
    namespace: OptionalIdentifier = None
    user_id: OptionalIdentifier = None
    agent_id: OptionalIdentifier = None
    """The agent whose memory blocks the prompt shows. Default: the session's agent."""
    model_name: FreeText | None = None
    """The name of any model. The prompt fits into the model's context window."""
    context_window_max: WindowTokens | None = None
    """The context window in tokens. It overrides the window of `model_name`."""
    long_term_memory_strategy: MemoryStrategyConfig | None = None
    """Accepted but ignored, because prompts do not create memories."""


class SessionIdentity(BaseModel):
    """A session id with its user and namespace."""

    session_id: str
    namespace: str | None = None
    user_id: str | None = None


class SessionListResponse(BaseModel):
    """A page of session ids."""

    sessions: list[str]
    """The ids of the sessions."""
    total: int
    identities: list[SessionIdentity] | None = Absent
    """The users and namespaces of the sessions, in the same order. Included only if the request asks for them."""


class HealthCheckResponse(BaseModel):
    """A response indicating that the server process is alive."""

    now: int
    """The server's time, in milliseconds since 1970 UTC."""
