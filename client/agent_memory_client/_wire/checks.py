"""Validate and convert input before it is sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from agent_memory_client._wire.requests import checked, jsonable, omit_none, validation_error
from agent_memory_client.errors import MemoryValidationError
from agent_memory_client.models import ClientMemoryRecord, MemoryMessage, MemoryRecord, WorkingMemory, new_id

_OUR_FIELDS = frozenset({"id", "created_at", "persisted_at", "discrete_memory_extracted"})


def as_records(memories: Sequence[ClientMemoryRecord | MemoryRecord | Mapping[str, Any]]) -> list[MemoryRecord]:
    """Convert memories to records with ids. None values in dicts are ignored.

    Raises MemoryValidationError for an invalid memory or an unknown field.
    """
    return [_record(memory) if isinstance(memory, Mapping) else _with_id(memory) for memory in memories]


def _with_id(memory: Any) -> MemoryRecord:
    if not isinstance(memory, MemoryRecord):
        raise MemoryValidationError("memories: give a list of mappings with 'text' or of ClientMemoryRecord")
    return memory if memory.id else memory.model_copy(update={"id": new_id()})


def _record(memory: Mapping[str, Any]) -> MemoryRecord:
    unknown = sorted(map(str, memory.keys() - ClientMemoryRecord.model_fields.keys()))
    if unknown:
        raise MemoryValidationError(f"a memory has no field {', '.join(unknown)}: remove it, or put it into `metadata`")
    return checked(ClientMemoryRecord, **omit_none(**memory))


def new_session(session_id: str, namespace: str | None, user_id: str | None, **fields: Any) -> WorkingMemory:
    """Return a new session that is not stored yet. Raises MemoryValidationError."""
    return checked(WorkingMemory, session_id=session_id, namespace=namespace, user_id=user_id, **omit_none(**fields))


def as_messages(messages: Sequence[Mapping[str, Any] | MemoryMessage]) -> list[MemoryMessage]:
    """Convert messages from any chat API's format to models. Raises MemoryValidationError."""
    try:
        return [message if isinstance(message, MemoryMessage) else _message(message) for message in messages]
    except ValidationError as error:
        raise validation_error(error) from error
    except AttributeError as error:
        raise MemoryValidationError("messages: give each as a mapping with 'role' and 'content' or as a MemoryMessage") from error


def _message(message: Mapping[str, Any]) -> MemoryMessage:
    """Parse a message. None in one of the API's own fields means that the field is not set."""
    return MemoryMessage.model_validate({key: value for key, value in message.items() if value is not None or key not in _OUR_FIELDS})


def message_body(message: MemoryMessage) -> dict[str, Any]:
    """Return the request body for a message.

    Fields of this API are omitted if they have no value. All other fields are included.
    """
    return jsonable(message) | {name: None for name, value in message.own_fields.items() if value is None}
