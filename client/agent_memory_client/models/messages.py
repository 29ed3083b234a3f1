"""Session messages, and requests and responses for appending them."""

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
"""How far the server has processed a message: stored in its session, promoted to long-term memory, or searchable by
meaning and keywords."""

TrackingFlag = Literal["t", "f"]
""""t" if facts were extracted from a message or memory, otherwise "f"."""


def _with_content(schema: dict[str, Any]) -> None:
    """Require `content` in responses. Requests can omit it if the message has other fields."""
    schema["required"] = ["role", "content"]
    schema["properties"]["content"].pop("default", None)


class MemoryMessage(BaseModel):
    """A message in the format of chat APIs.

    `content` can be text, a list of parts, null or missing. In this model and in all responses,
    `content` is the text of the parts. Other fields (`tool_calls`, `tool_call_id`, `name`,
    `refusal`, ...) are stored unchanged, and `to_chat` returns them.
    """

    model_config = ConfigDict(extra="allow", json_schema_extra=_with_content)

    role: Role
    """The speaker, such as `user`, `assistant`, `tool` or a name. At most 64 characters."""
    content: Content = ""
    """The content: text, a list of parts as in chat APIs, or null for messages with `tool_calls`. Responses contain the
    text of the parts."""
    id: Identifier = Field(default_factory=new_id)
    """The message's id, which lets the server detect repeated messages. If it is missing, the server generates one."""
    created_at: Instant = Field(default_factory=now)
    """The time when the message was written. Default: the time of the request."""
    persisted_at: Instant | None = None
    """The time when the message became a long-term memory. Null until then."""
    discrete_memory_extracted: TrackingFlag = "f"
    """`t` if facts were extracted from the message, `f` if not yet."""
    content_parts: list[Any] | None = Absent
    """The parts, if the content was sent as a list. Omitted for text."""
    no_content: NoContent | None = Absent
    """Why `content` is empty: it was sent as null (`null`) or not sent (`missing`). Omitted if there is content."""
    written_by: OptionalIdentifier = Absent
    """The API key (`token:` and its id) or the token's subject that wrote the message. Set by the server."""
    content_pictures: Literal["described", "words only"] | None = Absent
    """In responses, how images in the parts are remembered: as a model describes them, or by the accompanying words
    (text, alt text, file name). Omitted if there are no images."""

    @model_validator(mode="after")
    def _complete(self, info: ValidationInfo) -> Self:
        content, parts, reason = self.content, self.content_parts, self.no_content
        # Fast path: most messages are only text, and a request may contain thousands.
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
        """The message's additional fields as they were sent, such as `tool_calls` and `name`."""
        return self.__pydantic_extra__ or {}

    def to_chat(self) -> dict[str, Any]:
        """Return the message in its original form, with its role, content and other fields."""
        return {"role": self.role, **as_sent(self.content, self.content_parts, self.no_content), **self.own_fields}


class AppendMessagesRequest(BaseModel):
    """Messages to append to a session.

    Messages that are already stored (same id, role and content) are skipped, so the request can be
    repeated safely. If a message has a known id but different content, it gets a new id, which is
    reported in `notices`.
    """

    messages: Annotated[list[MemoryMessage], Field(min_length=1, max_length=MAX_APPENDED_MESSAGES)]
    """The messages to append, oldest first. At most 1,000."""
    namespace: OptionalIdentifier = None
    user_id: OptionalIdentifier = None
    agent_id: OptionalIdentifier = None
    """The session's agent. If it is missing, the session's agent does not change."""
    model_name: FreeText | None = None
    """The name of any model. Its context window determines when the server summarizes old messages."""
    context_window_max: WindowTokens | None = None
    """The context window in tokens. It overrides the window of `model_name`."""


class AppendMessagesResponse(BaseModel):
    """The session after an append, excluding its messages."""

    session_id: str
    namespace: str | None = None
    user_id: str | None = None
    appended: Annotated[int, Field(ge=0)]
    """The number of new messages. Messages that the session already had are not counted."""
    total_messages: Annotated[int, Field(ge=0)]
    """The number of messages in the session."""
    tokens: Annotated[int, Field(ge=0, le=MAX_COUNT)]
    """The total number of tokens in these messages."""
    version: Annotated[int, Field(ge=0)]
    """The session's version, for use with `If-Match`."""
    context_percentage_total_used: float | None = None
    """The share of the context window that the messages fill, from 0 to 100 percent. Null if the request has no model
    or window."""
    context_percentage_until_summarization: float | None = None
    """How close the session is to its next summary, from 0 to 100 percent. Null if the request has no model or
    window."""
    reached: MessageStage | None = None
    """The stage that all messages in the request had reached when `wait` ended: `stored` in the session, `promoted` to
    long-term memory, or `searchable` by meaning. Null unless `wait` is set."""
    notices: list[str] | None = Absent
