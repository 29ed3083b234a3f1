"""Convert a session's messages to the request format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from agent_memory_client._wire.requests import jsonable, validation_error
from agent_memory_client.errors import MemoryValidationError
from agent_memory_client.models import MemoryMessage

_OUR_FIELDS = frozenset({"id", "created_at", "persisted_at", "discrete_memory_extracted"})


def as_messages(messages: Sequence[Mapping[str, Any] | MemoryMessage]) -> list[MemoryMessage]:
    """Convert messages in any chat API's format to models. Raises MemoryValidationError."""
    try:
        return [message if isinstance(message, MemoryMessage) else _message(message) for message in messages]
    except ValidationError as error:
        raise validation_error(error) from error
    except AttributeError as error:
        raise MemoryValidationError("messages: give each as a mapping with 'role' and 'content' or as a MemoryMessage") from error


def _message(message: Mapping[str, Any]) -> MemoryMessage:
    """Parse a mapping. None in one of the API's own fields means "not given"."""
    return MemoryMessage.model_validate({key: value for key, value in message.items() if value is not None or key not in _OUR_FIELDS})


def message_body(message: MemoryMessage) -> dict[str, Any]:
    """Return a message's request body.

    It contains the API's own fields that have a value, and all of the message's other fields, even if they are null.
    """
    return jsonable(message) | {name: None for name, value in message.own_fields.items() if value is None}
