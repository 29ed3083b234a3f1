"""Parse requests from versions 0.1, 1.x and 2.x of Mem0's clients."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field, model_validator

from agent_memory.foundation.core.clock import stated_date
from agent_memory.foundation.core.errors import BadInput, NotSupported
from agent_memory.foundation.text.pictures import pictures_of
from agent_memory.foundation.text.prompt_marks import PROGRAM_ROLES
from agent_memory_client.models import ExtractionCategory, Identifier, Instant, OptionalIdentifier
from agent_memory_client.models._types import DayOrInstant, FreeText, JsonObject

ENTITY_IDS = ("user_id", "agent_id", "run_id", "app_id")
APP = "mem0_app_id"
"""Metadata key for the app's id."""
NAMED = "mem0_named"
"""Metadata key for the list of ids (`agent_id`, `run_id`) in the request."""
OWN_KEYS = frozenset({APP, NAMED})
"""Metadata keys that we add to the caller's metadata."""
_SWITCHES = ("show_expired", "enable_graph", "immutable")
_UNSUPPORTED = ("custom_instructions", "agent_custom_instructions", "structured_data_schema", "includes", "excludes")


_TEXT_PARTS = ("text", "input_text", "output_text", None)


def text_id(value: object) -> object:
    """Convert an integer to a string, and return other values unchanged."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


EntityId = Annotated[OptionalIdentifier, BeforeValidator(text_id)]
"""The id of a user, agent, run or app, given as text or integer."""


class Message(BaseModel):
    """A message. `parts` is empty if the content consists only of text."""

    role: Annotated[str, Field(min_length=1, max_length=64)] = "user"
    content: FreeText = ""
    name: Annotated[FreeText, Field(max_length=256)] | None = None
    parts: list[dict[str, Any]] = Field(default_factory=list[dict[str, Any]], exclude=True)

    @model_validator(mode="before")
    @classmethod
    def _read_parts(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        content = value.get("content")
        parts = content if isinstance(content, list) else [content] if isinstance(content, dict) else None
        if parts is None or not all(isinstance(part, (dict, str)) for part in parts):
            return {**value, "parts": [], "content": "" if content is None else content}
        whole = [part for part in map(_part_of, parts) if part is not None]
        texts = [part["text"] for part in whole if part["type"] == "text"]
        return {**value, "content": "\n".join(texts), "parts": whole if len(whole) > len(texts) else []}


def _part_of(part: dict[str, Any] | str) -> dict[str, Any] | None:
    """Return a part in chat API format, or None if it is an empty text part."""
    if isinstance(part, dict) and part.get("type") not in _TEXT_PARTS:
        return {**part, "type": str(part["type"])[:64]}
    text = part if isinstance(part, str) else part.get("text")
    return {"type": "text", "text": text} if isinstance(text, str) and text.strip() else None


def categories_of(value: Any) -> list[dict[str, Any]]:
    """Return categories as objects with `name` and `description`. Raises ValueError."""
    categories: list[dict[str, Any]] = []
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, str):
            categories.append({"name": item})
        elif isinstance(item, dict) and {"name", "description"} <= item.keys():
            categories.append({"name": item["name"], "description": item["description"] or ""})
        elif isinstance(item, dict):
            categories += [{"name": name, "description": text or ""} for name, text in item.items()]
        else:
            raise ValueError("must be a list of {name: description}")
    return categories


class Entities(BaseModel):
    """The entities that own memories. Validation raises NotSupported for unsupported options."""

    user_id: EntityId = None
    agent_id: EntityId = None
    run_id: EntityId = None
    app_id: EntityId = None

    @model_validator(mode="before")
    @classmethod
    def _check_supported(cls, value: Any) -> Any:
        for name in (*_UNSUPPORTED, *_SWITCHES) if isinstance(value, dict) else ():
            if value.get(name) is not None and (value[name] or name in _UNSUPPORTED):
                raise NotSupported(name)
        return value

    def entities(self) -> dict[str, str]:
        """Return the user, agent, run and app specified in the request."""
        return {name: value for name in ENTITY_IDS if (value := getattr(self, name))}


class AddRequest(Entities):
    messages: Annotated[list[Message], Field(min_length=1, max_length=500)]
    metadata: JsonObject | None = None
    custom_categories: Annotated[list[ExtractionCategory], BeforeValidator(categories_of)] | None = None
    infer: bool | None = None
    expiration_date: Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\d$")] | None = None
    timestamp: Instant | None = None
    async_mode: bool | None = None
    waits: bool = False

    @property
    def stated_at(self) -> datetime | None:
        """When the messages were stated: `timestamp`, a past `date` in the metadata, or None."""
        if self.timestamp is not None:
            return self.timestamp
        date = stated_date(self.metadata or {})
        return date if date is not None and date <= datetime.now(UTC) else None

    def statements(self) -> tuple[list[Message], list[Message]]:
        """Return the conversation's messages, and instructions to store as the agent's memories.

        Raises NotSupported if none of the content is supported, or BadInput if all messages are
        empty.
        """
        messages = [message for message in self.messages if message.content.strip() or (message.parts and self.keeps_parts(message))]
        if not messages and self.dropped():
            raise NotSupported(f"messages: {self.dropped()[0]} without a text")
        if not messages:
            raise BadInput("give at least one message with a text", field="messages")
        instructions = [message for message in messages if message.role in PROGRAM_ROLES]
        if not self.agent_id or (self.user_id and len(instructions) < len(messages)):
            return messages, []
        return [message for message in messages if message.role not in PROGRAM_ROLES], instructions

    def keeps_parts(self, message: Message) -> bool:
        """True if a message becomes part of a conversation, including its images and files."""
        return self.infer is not False and message.role not in PROGRAM_ROLES

    def dropped(self) -> list[str]:
        """Return the positions and types of message parts that will not be stored."""
        return [name for name, _, is_stored in self._other_parts() if not is_stored]

    def unread(self) -> list[str]:
        """Return the positions and types of stored message parts that are not images."""
        return [name for name, part, is_stored in self._other_parts() if is_stored and not pictures_of([part])]

    def _other_parts(self) -> Iterator[tuple[str, dict[str, Any], bool]]:
        for number, message in enumerate(self.messages):
            is_stored = self.keeps_parts(message)
            yield from ((f"messages.{number}: {part['type']}", part, is_stored) for part in message.parts if part["type"] != "text")

    def annotations(self) -> dict[str, Any]:
        """Return additional fields for the memories. Raises BadInput if a date is invalid."""
        annotations: dict[str, Any] = {}
        if self.agent_id:
            annotations["agent_id"] = self.agent_id
        own: dict[str, Any] = {APP: self.app_id} if self.app_id else {}
        if named := [name for name in ("agent_id", "run_id") if getattr(self, name)]:
            own[NAMED] = named
        if self.metadata or own:
            annotations["metadata"] = {**(self.metadata or {}), **own}
        if self.expiration_date:
            annotations["expires_at"] = end_of_day(self.expiration_date).isoformat()
        return annotations


def end_of_day(day: object) -> datetime:
    """Return the end (UTC) of the day when a memory expires.

    Raises BadInput unless `day` is in the format YYYY-MM-DD.
    """
    try:
        return datetime.strptime(str(day)[:10], "%Y-%m-%d").replace(tzinfo=UTC) + timedelta(days=1)
    except (ValueError, OverflowError):
        raise BadInput("must be a date as YYYY-MM-DD", field="expiration_date") from None


class ListRequest(Entities):
    filters: dict[str, Any] | None = None
    page: Annotated[int, Field(ge=1, le=10_000)] = 1
    page_size: Annotated[int, Field(ge=1)] | None = None
    limit: Annotated[int, Field(ge=1)] | None = None
    top_k: Annotated[int, Field(ge=1)] | None = None
    categories: list[Identifier] | None = None
    metadata: dict[str, Any] | None = None
    start_date: DayOrInstant | None = None
    end_date: DayOrInstant | None = None
    fields: list[str] | None = None

    def own_filters(self) -> dict[str, Any]:
        """Return the filters specified outside of `filters`."""
        named: dict[str, Any] = {}
        if self.categories:
            named["categories"] = {"in": self.categories}
        if self.metadata:
            named["metadata"] = self.metadata
        bounds = {name: bound.isoformat() for name, bound in (("gte", self.start_date), ("lte", self.end_date)) if bound is not None}
        return {**named, "created_at": bounds} if bounds else named


class SearchBody(ListRequest):
    query: Annotated[FreeText, Field(min_length=1)]
    threshold: float | None = None
    reference_date: Instant | None = None
