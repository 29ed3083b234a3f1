"""One message of a session, and the requests and answers of an append."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from agent_memory_client.models._types import (
    MAX_COUNT,
    FreeText,
    Identifier,
    Instant,
    OptionalIdentifier,
    Role,
    Text,
    WindowTokens,
    new_id,
    now,
)

MAX_APPENDED_MESSAGES = 1000

TrackingFlag = Literal["t", "f"]
"""Whether facts were extracted from a message or memory: "t" or "f"."""


class MemoryMessage(BaseModel):
    """One message. `model_fields_set` tells whether `id` and `created_at` were given or made up here."""

    role: Role
    content: Text
    id: Identifier = Field(default_factory=new_id)
    created_at: Instant = Field(default_factory=now)
    persisted_at: Instant | None = None
    discrete_memory_extracted: TrackingFlag = "f"


class AppendMessagesRequest(BaseModel):
    """Messages to add to the end of a session. One that the session holds already (id, role and content) is skipped, so a repeat
    is harmless; the same id with other words is another message."""

    messages: Annotated[list[MemoryMessage], Field(min_length=1, max_length=MAX_APPENDED_MESSAGES)]
    namespace: OptionalIdentifier = None
    user_id: OptionalIdentifier = None
    model_name: FreeText | None = None
    context_window_max: WindowTokens | None = None


class AppendMessagesResponse(BaseModel):
    """What the session looks like after an append, without its messages.

    `appended` counts the new ones (repeated ids are not), `version` is the session's version for `If-Match`.
    The percentages (0 to 100) are None unless a model or a context window was named.
    """

    session_id: str
    namespace: str | None = None
    user_id: str | None = None
    appended: Annotated[int, Field(ge=0)]
    total_messages: Annotated[int, Field(ge=0)]
    tokens: Annotated[int, Field(ge=0, le=MAX_COUNT)]
    version: Annotated[int, Field(ge=0)]
    context_percentage_total_used: float | None = None
    context_percentage_until_summarization: float | None = None
