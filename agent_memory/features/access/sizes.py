"""Check message sizes, which the request models do not limit."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic_core import to_json

from agent_memory.foundation.core.errors import TooLarge
from agent_memory_client.models import MemoryMessage, normalized_bytes

# The maximum number of bytes for one character after normalization (U+FDFA).
_MOST_CHARACTER_BYTES = 33


def check_messages(messages: Sequence[MemoryMessage], most: int) -> None:
    """Raise TooLarge if a message, including all its fields, exceeds `most` bytes."""
    for position, message in enumerate(messages):
        if len(message.content) > most // _MOST_CHARACTER_BYTES:
            _check_text(f"messages.{position}.content", message.content, most)
        if message.content_parts is not None or message.own_fields:
            _check_fields(message, f"messages.{position}.", most)


def _check_fields(message: MemoryMessage, prefix: str, most: int) -> None:
    # Content parts repeat the text, so only one of the two counts.
    fields = {**message.own_fields, "content": message.content if message.content_parts is None else message.content_parts}
    sizes = {name: len(to_json(value)) for name, value in fields.items()}
    whole = sum(sizes.values())
    if whole > most:
        largest = f"{prefix}{max(sizes, key=sizes.__getitem__)}"
        message_text = f"{largest} is the largest part of a message of {whole} bytes, more than {most} (MAX_MESSAGE_BYTES): shorten it"
        raise TooLarge(message_text, field=largest, limit=most)


def _check_text(field: str, text: str, most: int) -> None:
    if (size := len(text.encode())) > most:
        hint = "(MAX_MESSAGE_BYTES): shorten it, or split it"
        raise TooLarge(f"{field} takes {size} bytes, more than {most} {hint}", field=field, limit=most)
    if normalized_bytes(text, most) > most:
        message = f"{field} takes more than {most} bytes (MAX_MESSAGE_BYTES) after Unicode normalization (NFKC): shorten it, or split it"
        raise TooLarge(message, field=field, limit=most)
