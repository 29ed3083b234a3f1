"""Memory prompts: requests, responses, and content blocks in messages."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal, TypeAlias, cast

from pydantic import AnyUrl, BaseModel, ConfigDict, Field

from agent_memory_client.models._types import Absent, FreeText, Identifier, OptionalIdentifier, SessionIdentifier
from agent_memory_client.models.chat import NoContent, as_sent
from agent_memory_client.models.features.prompt_options import PromptOptions
from agent_memory_client.models.memories import MemoryRecordResult
from agent_memory_client.models.search import AnswerExplanation, SearchRequest
from agent_memory_client.models.working import WorkingMemoryRequest

PromptFormat: TypeAlias = Literal["openai", "anthropic", "text"]


MAX_SHOWN_MESSAGES = 10_000


class ShownMessages(BaseModel):
    """Messages from a session that the caller shows to the model itself."""

    session_id: SessionIdentifier
    message_ids: Annotated[list[Identifier], Field(max_length=MAX_SHOWN_MESSAGES)]
    """The ids of the messages, in any order. Unknown ids are ignored."""


class PromptQuestion(BaseModel):
    """The fields that all prompt requests share: a question, a session and a search."""

    query: FreeText
    """The user's new message. The server searches memory for it and adds it as the last message of the prompt."""
    user_id: OptionalIdentifier = None
    """The session's user, unless `session` specifies one. Without a session: the user whose memories to search."""
    namespace: OptionalIdentifier = None
    """The session's namespace, unless `session` specifies one. Without a session: the namespace to search."""
    agent_id: OptionalIdentifier = None
    """The agent whose memory blocks the prompt shows, unless `session` specifies one."""
    timezone: Annotated[str, Field(max_length=64)] | None = None
    """The time zone of dates in the prompt, as an IANA name such as `Europe/Lisbon`. Default: the time zone of
    `long_term_search`, or of the user's extraction rules, or UTC."""
    session: WorkingMemoryRequest | None = None
    """The conversation whose summary and messages the prompt includes. Default: no conversation."""
    long_term_search: SearchRequest | bool | None = None
    """True to search long-term memory, or the search options. The search text is `query`."""
    max_tokens: Annotated[int, Field(ge=64, le=1_000_000)] | None = None
    """The combined token limit for summary, messages, memories and query. Default: the session's context window, or
    16,000 with a `format`."""
    format: PromptFormat | None = None
    """The response format. `openai`: messages with string content, and at most one system message, which comes first.
    `anthropic`: a `system` text, and alternating user and assistant messages. `text`: one string. Without a format, the
    response has the archived server's structure."""
    shown_messages: ShownMessages | None = None
    """If there is no `session`: messages that you show next to the prompt. The prompt omits memories made only from
    them."""
    include_ids: bool = True
    """True to end each memory's line with its id, which takes about twenty tokens."""


class MemoryPromptRequest(PromptOptions, PromptQuestion):
    """A question, with an optional session and search of long-term memory."""


class _Block(BaseModel):
    """Part of a message in MCP format. Unknown keys are preserved. `meta` is sent as `_meta`."""

    model_config = ConfigDict(extra="allow", validate_by_name=True, validate_by_alias=True, serialize_by_alias=True)

    shared_descriptions: ClassVar[Mapping[str, str]] = MappingProxyType(
        {"annotations": "The intended audience, and the importance.", "meta": "Data for the protocol itself. This server sends none."}
    )


class Annotations(_Block):
    """A block's intended audience and importance."""

    audience: list[Literal["user", "assistant"]] | None = None
    """The audience: `user` or `assistant`. Null means both."""
    priority: Annotated[float, Field(ge=0.0, le=1.0)] | None = None
    """The importance, from 0 (optional) to 1 (required)."""


class Icon(_Block):
    """An icon for a resource. `sizes` contains values such as "48x48"."""

    src: str
    """The icon's URL or data URI."""
    mimeType: str | None = None
    """The icon's media type, such as `image/png`."""
    sizes: list[str] | None = None
    """The sizes at which the icon can be used, such as `48x48`."""


class TextContent(_Block):
    """Text in a message."""

    type: Literal["text"]
    text: str
    """The text of the message."""
    annotations: Annotations | None = None
    meta: dict[str, Any] | None = Field(default=None, alias="_meta")


class ImageContent(_Block):
    """An image in base64."""

    type: Literal["image"]
    data: str
    """The image's bytes in base64."""
    mimeType: str
    """The image's media type, such as `image/png`."""
    annotations: Annotations | None = None
    meta: dict[str, Any] | None = Field(default=None, alias="_meta")


class AudioContent(_Block):
    """Audio in base64."""

    type: Literal["audio"]
    data: str
    """The audio's bytes in base64."""
    mimeType: str
    """The audio's media type, such as `audio/wav`."""
    annotations: Annotations | None = None
    meta: dict[str, Any] | None = Field(default=None, alias="_meta")


class ResourceLink(_Block):
    """A link to a resource. `size` is in bytes."""

    name: str
    """The resource's name, for programs."""
    title: str | None = None
    """The resource's title, for people."""
    uri: AnyUrl
    description: str | None = None
    """What the resource contains."""
    mimeType: str | None = None
    size: int | None = None
    """The size in bytes, if known."""
    icons: list[Icon] | None = None
    """Icons that programs can show for the resource."""
    annotations: Annotations | None = None
    meta: dict[str, Any] | None = Field(default=None, alias="_meta")
    type: Literal["resource_link"]


class TextResourceContents(_Block):
    """The text of a resource."""

    uri: AnyUrl
    mimeType: str | None = None
    meta: dict[str, Any] | None = Field(default=None, alias="_meta")
    text: str
    """The resource's text."""


class BlobResourceContents(_Block):
    """The bytes of a resource in base64."""

    uri: AnyUrl
    mimeType: str | None = None
    meta: dict[str, Any] | None = Field(default=None, alias="_meta")
    blob: str
    """The resource's bytes in base64."""


class EmbeddedResource(_Block):
    """A resource with its content."""

    type: Literal["resource"]
    resource: TextResourceContents | BlobResourceContents
    """The text or bytes of the resource."""
    annotations: Annotations | None = None
    meta: dict[str, Any] | None = Field(default=None, alias="_meta")


Content: TypeAlias = TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource


class Message(BaseModel):
    """A message from the user or assistant. Other fields (`tool_calls`, …) are as they were sent."""

    model_config = ConfigDict(extra="allow")

    role: Literal["user", "assistant"]
    """The speaker: `user`, or `assistant` for all other speakers."""
    content: Annotated[Content, Field(discriminator="type")]
    """The content. This server always sends text."""
    original_role: str | None = Absent
    """The original speaker if it is neither user nor assistant, such as `tool` or a name. Otherwise omitted."""
    content_parts: list[Any] | None = Absent
    """The parts, if the content was sent as a list. Omitted for text."""
    no_content: NoContent | None = Absent
    """Why the content is empty: it was sent as null (`null`) or not sent (`missing`). Omitted if there is content."""


class SystemMessage(BaseModel):
    """A system message: instructions or knowledge for the model."""

    role: Literal["system"] = "system"
    """Always `system`."""
    content: str | TextContent
    """The session's summary, or the memories that match the query."""


class ChatMessage(BaseModel):
    """A message in a response with a `format`. Other fields are as they were sent."""

    model_config = ConfigDict(extra="allow")

    role: str
    """The speaker, using the role names of the target API."""
    content: str
    """The message's text."""


class MemoryPromptResponse(BaseModel):
    """Messages for a chat model, and the long-term memories that they contain."""

    messages: list[Message | SystemMessage | ChatMessage]
    """The messages of the prompt, in the order that a chat model expects. The query is last. Empty for the format
    `text`."""
    long_term_memories: list[MemoryRecordResult] | None = None
    """The memories in the prompt. Null if the prompt did not include a search."""
    notices: list[str] | None = None
    explanation: AnswerExplanation | None = None
    """An explanation of the search, if it set `explain`."""
    format: PromptFormat | None = Absent
    """The requested format. Omitted if the request did not specify one."""
    system: str | None = Absent
    """The `system` text for the format `anthropic`. Omitted if the text is empty, and for other formats."""
    text: str | None = Absent
    """The whole prompt for the format `text`. Omitted for other formats."""
    relevant: bool | None = Absent
    """True if memory added something to the session's messages, such as a summary or memories. Omitted without a
    format."""

    def to_openai(self) -> list[dict[str, Any]]:
        """Return messages for chat completion APIs.

        The session's messages are returned as they were sent. All others contain only a role and
        text.
        """
        return prompt_messages(self)


def text_of(content: Any) -> str:
    """Return the text of a message's content: a string, a text block, or a list of these."""
    if isinstance(content, str):
        return content
    if isinstance(content, Mapping):
        block = cast("Mapping[str, Any]", content)
        return str(block.get("text") or "")
    if isinstance(content, (list, tuple)):
        return "\n".join(text for text in map(text_of, cast("list[Any]", content)) if text)
    if isinstance(content, TextContent):
        return content.text
    return ""


_CHAT_ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})
_SHOWN_KEYS = frozenset({"role", "content", "original_role", "content_parts", "no_content"})


def prompt_messages(response: MemoryPromptResponse | Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a prompt response's chat messages: `[{"role": …, "content": …}, …]`.

    The response can be a model instance or a mapping parsed from JSON.
    """
    if isinstance(response, MemoryPromptResponse):
        return [_chat_message({**dict(message), **(message.model_extra or {})}) for message in response.messages]
    return [_chat_message(message) for message in response["messages"]]


def _chat_message(message: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a message to chat format.

    Unknown roles, and tool messages without a call id, become `assistant`.
    """
    own = {name: value for name, value in message.items() if name not in _SHOWN_KEYS}
    role = message.get("original_role") or message["role"]
    names_call = {"tool": "tool_call_id", "function": "name"}.get(role)
    if role not in _CHAT_ROLES or (names_call is not None and names_call not in own):
        role = message["role"]
    return {"role": str(role), **as_sent(text_of(message["content"]), message.get("content_parts"), message.get("no_content")), **own}
