"""Messages of a session, and requests and answers of an append."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, model_validator

from agent_memory_client.models._types import (
    ANSWER,
    MAX_COUNT,
    Absent,
    FreeText,
    Identifier,
    Instant,
    OptionalIdentifier,
    Role,
    WindowTokens,
    is_blank,
    new_id,
    now,
)
from agent_memory_client.models.chat import Content, NoContent, as_sent, chat_content

MAX_APPENDED_MESSAGES = 1000

MessageStage = Literal["stored", "promoted", "searchable"]
"""How far a message has come: kept in its session, also a long-term memory, and that found by meaning as well as by words."""

TrackingFlag = Literal["t", "f"]
"""Whether facts were extracted from a message or memory: "t" or "f"."""


def _with_content(schema: dict[str, Any]) -> None:
    """Require `content` in answers; a request leaves it out only beside other fields."""
    schema["required"] = ["role", "content"]
    schema["properties"]["content"].pop("default", None)


class MemoryMessage(BaseModel):
    """One message as chat APIs have it; `to_chat` returns it as it was sent.

    `content` may be text, a list of parts, null or absent; here and in answers it is the text of the parts. Other
    fields (`tool_calls`, `tool_call_id`, `name`, `refusal`, ...) are kept as they are.
    """

    model_config = ConfigDict(extra="allow", json_schema_extra=_with_content)

    role: Role
    """Who speaks, such as `user`, `assistant`, `tool` or a name; at most 64 characters."""
    content: Content = ""
    """What was said: text, a list of parts as chat APIs have them, or null beside `tool_calls`; answers have the text
    of the parts."""
    id: Identifier = Field(default_factory=new_id)
    """The message's id, by which a repeat is known; one is made when it is left out."""
    created_at: Instant = Field(default_factory=now)
    """When it was said; the time of the request when not given."""
    persisted_at: Instant | None = None
    """When it was remembered as a long-term memory; null until then."""
    discrete_memory_extracted: TrackingFlag = "f"
    """`t` when facts were extracted from it, `f` when they may still be."""
    content_parts: list[Any] | None = Absent
    """The parts of a content that was sent as a list; left out when it was text."""
    no_content: NoContent | None = Absent
    """Why `content` is empty: it was sent as null (`null`), or not at all (`missing`); left out when there is one."""

    @model_validator(mode="after")
    def _complete(self, info: ValidationInfo) -> Self:
        content, parts, reason = self.content, self.content_parts, self.no_content
        # Fast path: most messages are text alone, and a request may hold thousands.
        text_alone = content.__class__ is str and content and parts is None and reason is None and not self.__pydantic_extra__
        answered = info.context is ANSWER
        if text_alone and not (content.isspace() if answered else is_blank(content)):
            return self
        fields = {} if self.__pydantic_extra__ is None else self.__pydantic_extra__
        contents = chat_content(content, "content" in self.model_fields_set, parts, reason, fields, answered=answered)
        vars(self).update(zip(("content", "content_parts", "no_content"), contents, strict=True))
        return self

    @property
    def own_fields(self) -> dict[str, Any]:
        """The other fields, as they were sent: `tool_calls`, `tool_call_id`, `name`, `refusal` and so on."""
        return self.__pydantic_extra__ or {}

    def to_chat(self) -> dict[str, Any]:
        """Return the message as it was sent to a chat API: role, content and its own fields."""
        return {"role": self.role, **as_sent(self.content, self.content_parts, self.no_content), **self.own_fields}


class AppendMessagesRequest(BaseModel):
    """Messages to append to a session. Known messages (id, role and content) are skipped, so a repeat is harmless.

    A known id with other words is another message, which gets a new id (see `notices`).
    """

    messages: Annotated[list[MemoryMessage], Field(min_length=1, max_length=MAX_APPENDED_MESSAGES)]
    """The messages to add, oldest first; at most 1,000."""
    namespace: OptionalIdentifier = None
    user_id: OptionalIdentifier = None
    agent_id: OptionalIdentifier = None
    """The agent that talks in the session; one that it has stays when not given."""
    model_name: FreeText | None = None
    """The model whose context window decides when old messages are summarized; any name."""
    context_window_max: WindowTokens | None = None
    """That window in tokens; beats `model_name`."""


class AppendMessagesResponse(BaseModel):
    """The session after an append, without its messages."""

    session_id: str
    namespace: str | None = None
    user_id: str | None = None
    appended: Annotated[int, Field(ge=0)]
    """How many messages are new; those that the session had already do not count."""
    total_messages: Annotated[int, Field(ge=0)]
    """How many messages the session holds now."""
    tokens: Annotated[int, Field(ge=0, le=MAX_COUNT)]
    """How many tokens these messages have."""
    version: Annotated[int, Field(ge=0)]
    """The session's version, for `If-Match`."""
    context_percentage_total_used: float | None = None
    """How much of the context window its messages fill, from 0 to 100; null unless a model or a window was named."""
    context_percentage_until_summarization: float | None = None
    """How near it is to being summarized, from 0 to 100; null unless a model or a window was named."""
    reached: MessageStage | None = None
    """How far all messages of the request had come when `wait` ended: `stored` in the session, `promoted` to long-term
    memory, or `searchable` by meaning; null without `wait`."""
    notices: list[str] | None = Absent
