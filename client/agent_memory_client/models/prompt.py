"""The memory prompt: its request, its answer, and the content blocks that messages are made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias, cast

from pydantic import AnyUrl, BaseModel, ConfigDict, Field

from agent_memory_client.models._types import FreeText
from agent_memory_client.models.memories import MemoryRecordResult
from agent_memory_client.models.search import AnswerExplanation, SearchRequest
from agent_memory_client.models.working import WorkingMemoryRequest


class MemoryPromptRequest(BaseModel):
    """A question, the session it belongs to, and whether (or how) to search long-term memory for it.

    With `max_tokens` summary, messages and memories share that many tokens, the question included.
    """

    query: FreeText
    session: WorkingMemoryRequest | None = None
    long_term_search: SearchRequest | bool | None = None
    max_tokens: Annotated[int, Field(ge=64, le=1_000_000)] | None = None


class _Block(BaseModel):
    """A part of a message in the shape that MCP clients know: unknown keys are kept, `meta` is `_meta` on the wire."""

    model_config = ConfigDict(extra="allow", validate_by_name=True, validate_by_alias=True, serialize_by_alias=True)


class Annotations(_Block):
    """For whom a block is meant (None: everybody) and how important it is (0 to 1)."""

    audience: list[Literal["user", "assistant"]] | None = None
    priority: Annotated[float, Field(ge=0.0, le=1.0)] | None = None


class Icon(_Block):
    """A picture for a resource; `sizes` are like "48x48"."""

    src: str
    mimeType: str | None = None
    sizes: list[str] | None = None


class TextContent(_Block):
    """Text."""

    type: Literal["text"]
    text: str
    annotations: Annotations | None = None
    meta: dict[str, Any] | None = Field(default=None, alias="_meta")


class ImageContent(_Block):
    """A picture, in base64."""

    type: Literal["image"]
    data: str
    mimeType: str
    annotations: Annotations | None = None
    meta: dict[str, Any] | None = Field(default=None, alias="_meta")


class AudioContent(_Block):
    """Sound, in base64."""

    type: Literal["audio"]
    data: str
    mimeType: str
    annotations: Annotations | None = None
    meta: dict[str, Any] | None = Field(default=None, alias="_meta")


class ResourceLink(_Block):
    """A reference to something that can be read elsewhere; `size` is in bytes."""

    name: str
    title: str | None = None
    uri: AnyUrl
    description: str | None = None
    mimeType: str | None = None
    size: int | None = None
    icons: list[Icon] | None = None
    annotations: Annotations | None = None
    meta: dict[str, Any] | None = Field(default=None, alias="_meta")
    type: Literal["resource_link"]


class TextResourceContents(_Block):
    """A resource's text."""

    uri: AnyUrl
    mimeType: str | None = None
    meta: dict[str, Any] | None = Field(default=None, alias="_meta")
    text: str


class BlobResourceContents(_Block):
    """A resource's bytes, in base64."""

    uri: AnyUrl
    mimeType: str | None = None
    meta: dict[str, Any] | None = Field(default=None, alias="_meta")
    blob: str


class EmbeddedResource(_Block):
    """A resource with its contents."""

    type: Literal["resource"]
    resource: TextResourceContents | BlobResourceContents
    annotations: Annotations | None = None
    meta: dict[str, Any] | None = Field(default=None, alias="_meta")


Content: TypeAlias = TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource


class Message(BaseModel):
    """A turn of the user or the assistant."""

    role: Literal["user", "assistant"]
    content: Annotated[Content, Field(discriminator="type")]


class SystemMessage(BaseModel):
    """Instructions or knowledge for the model."""

    role: Literal["system"] = "system"
    content: str | TextContent


class MemoryPromptResponse(BaseModel):
    """Messages ready for a chat model, and the long-term memories that went into them. `notices` is that of a search."""

    messages: list[Message | SystemMessage]
    long_term_memories: list[MemoryRecordResult] | None = None
    notices: list[str] | None = None
    explanation: AnswerExplanation | None = None

    def to_openai(self) -> list[dict[str, str]]:
        """The messages as chat completion APIs take them: role and string content."""
        return prompt_messages(self)


def text_of(content: Any) -> str:
    """The text of a message's content: a string, a text block (model or mapping), or a list of these. Other blocks have none."""
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


def prompt_messages(response: MemoryPromptResponse | Mapping[str, Any]) -> list[dict[str, str]]:
    """A prompt answer (parsed, or the JSON as a mapping) as plain chat messages: `[{"role": …, "content": "…"}, …]`."""
    if isinstance(response, MemoryPromptResponse):
        return [{"role": message.role, "content": text_of(message.content)} for message in response.messages]
    return [{"role": str(message["role"]), "content": text_of(message["content"])} for message in response["messages"]]
