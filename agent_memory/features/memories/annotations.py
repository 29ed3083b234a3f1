"""Read `remember_as`, the message field that annotates the resulting memories."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from agent_memory.foundation.core.errors import BadInput
from agent_memory.foundation.core.permissions import access_denied
from agent_memory.foundation.core.scope import Scope
from agent_memory_client.models import Instant, MemoryMessage, MemoryRecord, OptionalIdentifier
from agent_memory_client.models.memories import JsonObject

REMEMBER_AS = "remember_as"


class Annotations(BaseModel):
    model_config = ConfigDict(extra="forbid")

    agent_id: OptionalIdentifier = None
    expires_at: Instant | None = None
    metadata: JsonObject | None = None
    category: OptionalIdentifier = None
    about_user: bool | None = None
    document: bool | None = None
    """True for a passage from a document. Facts are extracted even if a tool sent it."""


def annotations_of(message: MemoryMessage) -> Annotations | None:
    """Return a message's annotations, or None if they are missing or invalid."""
    value = message.own_fields.get(REMEMBER_AS)
    if not isinstance(value, dict):
        return None
    try:
        return Annotations.model_validate(value)
    except ValidationError:
        return None


def check_annotations(scope: Scope, messages: Sequence[MemoryMessage]) -> None:
    """Raise BadInput for invalid annotations, and Forbidden for an inaccessible agent."""
    for position, message in enumerate(messages):
        if not isinstance(message.own_fields.get(REMEMBER_AS), dict):
            continue
        annotations = annotations_of(message)
        field = f"messages.{position}.{REMEMBER_AS}"
        if annotations is None:
            named = "agent_id, expires_at (ISO 8601), metadata (an object), category, about_user and document (true or false)"
            raise BadInput(f"may have {named}", field=field)
        if scope.agents is not None and annotations.agent_id is not None and annotations.agent_id not in scope.agents:
            raise access_denied("this agent", f"{field}.agent_id")


def annotate(record: MemoryRecord, messages: Iterable[Annotations | None]) -> None:
    """Copy the messages' earliest expiry, metadata, and common agent and category."""
    each = list(messages)
    message_annotations = [item for item in each if item is not None]
    if not message_annotations:
        return
    if (agent := _agreed(each, "agent_id")) is not None:
        record.agent_id = agent
    ends = [end for end in (record.expires_at, *(item.expires_at for item in message_annotations)) if end is not None]
    if ends:
        record.expires_at = min(ends)
    if record.category is None and (category := _agreed(each, "category")) is not None:
        record.category = category
    metadata: dict[str, Any] = {}
    for item in message_annotations:
        metadata |= item.metadata or {}
    if metadata:
        record.metadata = {**metadata, **record.metadata}


def _agreed(messages: Iterable[Annotations | None], name: str) -> str | None:
    values = {getattr(item, name, None) for item in messages}
    return values.pop() if len(values) == 1 else None
