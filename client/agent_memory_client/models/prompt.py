"""The memory prompt: request, answer, and content blocks of messages."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal, TypeAlias, cast

from pydantic import AnyUrl, BaseModel, ConfigDict, Field

from agent_memory_client.models._types import Absent, FreeText, OptionalIdentifier
from agent_memory_client.models.chat import NoContent, as_sent
from agent_memory_client.models.features.prompt_options import PromptOptions
from agent_memory_client.models.memories import MemoryRecordResult
from agent_memory_client.models.search import AnswerExplanation, SearchRequest
from agent_memory_client.models.working import WorkingMemoryRequest

PromptFormat: TypeAlias = Literal["openai", "anthropic", "text"]


class PromptQuestion(BaseModel):
    """What every prompt is made of: a question, a session and a search."""

    query: FreeText
    """The user's new message: memory is searched for it, and it becomes the prompt's last message."""
    user_id: OptionalIdentifier = None
    """The session's user, where `session` names none; without a session, the user whose memories are searched."""
    namespace: OptionalIdentifier = None
    """The session's namespace, where `session` names none; without a session, the namespace that is searched."""
    agent_id: OptionalIdentifier = None
    """The agent whose memory blocks the prompt shows, where `session` names none."""
    timezone: Annotated[str, Field(max_length=64)] | None = None
    """The time zone of the prompt's days, as an IANA name such as `Europe/Lisbon`; that of `long_term_search`, else of the user's
    extraction rules, else UTC, when not given."""
    session: WorkingMemoryRequest | None = None
    """The conversation whose summary and messages belong to the prompt; none when not given."""
    long_term_search: SearchRequest | bool | None = None
    """Whether long-term memory is searched (true), or how: a search whose text is `query`."""
    max_tokens: Annotated[int, Field(ge=64, le=1_000_000)] | None = None
    """How many tokens summary, messages, memories and query may take together; the session's context window when not given, and with a
    `format` 16,000."""
    format: PromptFormat | None = None
    """For which API the answer is written: `openai` (messages with string contents, at most one system message, at the front), `anthropic`
    (`system` apart, messages of user and assistant in turns) or `text` (one string); as the archived server has it when not given."""
    include_ids: bool = True
    """Whether each line of a memory ends with its id; one costs some twenty tokens."""


class MemoryPromptRequest(PromptOptions, PromptQuestion):
    """A question, the session it belongs to, and whether (or how) to search long-term memory for it."""


class _Block(BaseModel):
    """A part of a message in the shape that MCP clients know: unknown keys are kept, `meta` is `_meta` on the wire."""

    model_config = ConfigDict(extra="allow", validate_by_name=True, validate_by_alias=True, serialize_by_alias=True)

    shared_descriptions: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            "annotations": "For whom it is meant, and how important it is.",
            "meta": "Data of the protocol's own; this server sends none.",
        }
    )


class Annotations(_Block):
    """The audience and importance of a block."""

    audience: list[Literal["user", "assistant"]] | None = None
    """For whom it is meant, the `user` or the `assistant`; for both when null."""
    priority: Annotated[float, Field(ge=0.0, le=1.0)] | None = None
    """How important it is, from 0 (optional) to 1 (required)."""


class Icon(_Block):
    """A picture for a resource; `sizes` are like "48x48"."""

    src: str
    """The picture's address, or a data URI."""
    mimeType: str | None = None
    """The picture's media type, such as `image/png`."""
    sizes: list[str] | None = None
    """The sizes that it fits, such as `48x48`."""


class TextContent(_Block):
    """Text."""

    type: Literal["text"]
    text: str
    """What is said, in words."""
    annotations: Annotations | None = None
    meta: dict[str, Any] | None = Field(default=None, alias="_meta")


class ImageContent(_Block):
    """A picture, in base64."""

    type: Literal["image"]
    data: str
    """The picture in base64."""
    mimeType: str
    """The picture's media type, such as `image/png`."""
    annotations: Annotations | None = None
    meta: dict[str, Any] | None = Field(default=None, alias="_meta")


class AudioContent(_Block):
    """Sound, in base64."""

    type: Literal["audio"]
    data: str
    """The sound in base64."""
    mimeType: str
    """The sound's media type, such as `audio/wav`."""
    annotations: Annotations | None = None
    meta: dict[str, Any] | None = Field(default=None, alias="_meta")


class ResourceLink(_Block):
    """A reference to something that can be read elsewhere; `size` is in bytes."""

    name: str
    """The resource's name for programs."""
    title: str | None = None
    """The resource's name for people."""
    uri: AnyUrl
    description: str | None = None
    """What it holds."""
    mimeType: str | None = None
    size: int | None = None
    """Its size in bytes, if known."""
    icons: list[Icon] | None = None
    """Pictures to show for it."""
    annotations: Annotations | None = None
    meta: dict[str, Any] | None = Field(default=None, alias="_meta")
    type: Literal["resource_link"]


class TextResourceContents(_Block):
    """A resource's text."""

    uri: AnyUrl
    mimeType: str | None = None
    meta: dict[str, Any] | None = Field(default=None, alias="_meta")
    text: str
    """The resource's text."""


class BlobResourceContents(_Block):
    """A resource's bytes, in base64."""

    uri: AnyUrl
    mimeType: str | None = None
    meta: dict[str, Any] | None = Field(default=None, alias="_meta")
    blob: str
    """The resource's bytes in base64."""


class EmbeddedResource(_Block):
    """A resource with its contents."""

    type: Literal["resource"]
    resource: TextResourceContents | BlobResourceContents
    """The resource with its contents."""
    annotations: Annotations | None = None
    meta: dict[str, Any] | None = Field(default=None, alias="_meta")


Content: TypeAlias = TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource


class Message(BaseModel):
    """A turn of the user or the assistant, with the fields that its message was sent with (`tool_calls`, ...)."""

    model_config = ConfigDict(extra="allow")

    role: Literal["user", "assistant"]
    """Who speaks: the `user`, or the `assistant` for everybody else."""
    content: Annotated[Content, Field(discriminator="type")]
    """What is said; this server sends text."""
    original_role: str | None = Absent
    """Who spoke when it was neither, such as `tool` or a name; left out otherwise."""
    content_parts: list[Any] | None = Absent
    """The parts of a content that was sent as a list; left out when it was text."""
    no_content: NoContent | None = Absent
    """Why the content is empty: it was sent as null (`null`), or not at all (`missing`); left out when there is one."""


class SystemMessage(BaseModel):
    """Instructions or knowledge for the model."""

    role: Literal["system"] = "system"
    """Always `system`."""
    content: str | TextContent
    """The session's summary, or the memories that fit the query."""


class ChatMessage(BaseModel):
    """A message of an answer to a request with a `format`; with the fields that it was sent with (`tool_calls`, …)."""

    model_config = ConfigDict(extra="allow")

    role: str
    """Who speaks, as the API names it."""
    content: str
    """What is said."""


class MemoryPromptResponse(BaseModel):
    """Messages ready for a chat model, and the long-term memories in them."""

    messages: list[Message | SystemMessage | ChatMessage]
    """The prompt, in the order in which a chat model takes it; the query comes last. Empty for the format `text`."""
    long_term_memories: list[MemoryRecordResult] | None = None
    """The memories that went into it; null when none were searched for."""
    notices: list[str] | None = None
    explanation: AnswerExplanation | None = None
    """How the answer came about, when the search asked for that with `explain`."""
    format: PromptFormat | None = Absent
    """The format of the request; left out when it named none."""
    system: str | None = Absent
    """What the format `anthropic` takes as `system`; left out when there is nothing to say, and with another format."""
    text: str | None = Absent
    """The whole prompt in the format `text`; left out with another one."""
    relevant: bool | None = Absent
    """Whether memory had anything to add (a summary, memories), and not only the session's messages; left out without a format."""

    def to_openai(self) -> list[dict[str, Any]]:
        """Return messages for chat completion APIs: a session's as they were sent, others as role and text."""
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
_SHOWN = frozenset({"role", "content", "original_role", "content_parts", "no_content"})


def prompt_messages(response: MemoryPromptResponse | Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a prompt answer (parsed, or the JSON as a mapping) as chat messages: `[{"role": …, "content": …, …},
    …]`."""
    if isinstance(response, MemoryPromptResponse):
        return [_chat_message({**dict(message), **(message.model_extra or {})}) for message in response.messages]
    return [_chat_message(message) for message in response["messages"]]


def _chat_message(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message as it was sent. Unknown roles, and tool answers without a call id, become the assistant's."""
    own = {name: value for name, value in message.items() if name not in _SHOWN}
    role = message.get("original_role") or message["role"]
    names_call = {"tool": "tool_call_id", "function": "name"}.get(role)
    if role not in _CHAT_ROLES or (names_call is not None and names_call not in own):
        role = message["role"]
    return {"role": str(role), **as_sent(text_of(message["content"]), message.get("content_parts"), message.get("no_content")), **own}
