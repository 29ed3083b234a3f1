"""Check requests against the operator's size limits where these are lower than the limits of the request models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from pydantic_core import to_json

from agent_memory.foundation.core.errors import BadInput, TooLarge
from agent_memory.foundation.core.settings import LimitSettings
from agent_memory_client.models import MemoryMessage, MemoryRecord, normalized_bytes

# The maximum number of bytes for one character after normalization (U+FDFA).
_MOST_CHARACTER_BYTES = 33


class SizeLimits:
    def __init__(self, settings: LimitSettings) -> None:
        self._settings = settings
        defaults = LimitSettings.model_fields
        # The request models already check the default limits.
        self._text = settings.memory_bytes < defaults["memory_bytes"].default
        self._tags = settings.tags < defaults["tags"].default
        self._depth = settings.json_depth < defaults["json_depth"].default

    def check_messages(self, messages: Sequence[MemoryMessage]) -> None:
        """Raise TooLarge if a message, including its other fields, is too long. Raise BadInput if it is nested too deeply."""
        most = self._settings.message_bytes
        for position, message in enumerate(messages):
            if len(message.content) > most // _MOST_CHARACTER_BYTES:
                _check_text(f"messages.{position}.content", message.content, most, "MAX_MESSAGE_BYTES")
            if message.content_parts is not None or message.own_fields:
                self._beside(message, f"messages.{position}.")

    def _beside(self, message: MemoryMessage, prefix: str) -> None:
        fields = dict(message.own_fields)
        # Content parts repeat the text, so only one of the two counts.
        fields["content"] = message.content if message.content_parts is None else message.content_parts
        for name, value in fields.items():
            self.check_json(value, f"{prefix}{name}")
        sizes = {name: len(to_json(value)) for name, value in fields.items()}
        most, whole = self._settings.message_bytes, sum(sizes.values())
        if whole > most:
            largest = f"{prefix}{max(sizes, key=sizes.__getitem__)}"
            message_text = f"{largest} is the largest part of a message of {whole} bytes, more than {most} (MAX_MESSAGE_BYTES): shorten it"
            raise TooLarge(message_text, field=largest, limit=most)

    def check_memories(self, records: Sequence[MemoryRecord]) -> None:
        """Raise TooLarge if a text is too long. Raise BadInput for too many tags, or for metadata that is nested too deeply."""
        if not (self._text or self._tags or self._depth):
            return
        for position, record in enumerate(records):
            self.check_memory(record, f"memories.{position}.")

    def check_memory(self, record: Any, prefix: str = "") -> None:
        """Check one memory, or changes to one, like `check_memories`. `prefix` is the memory's path in the request."""
        if self._text and (text := getattr(record, "text", None)):
            _check_text(f"{prefix}text", text, self._settings.memory_bytes, "MAX_MEMORY_BYTES")
        for name in ("topics", "entities") if self._tags else ():
            tags: Sequence[str] = getattr(record, name, None) or ()
            if len(tags) > self._settings.tags:
                message = f"must have at most {self._settings.tags} items (MAX_TAGS), got {len(tags)}: give the most important ones"
                raise BadInput(message, field=f"{prefix}{name}")
        for name in ("metadata", "extraction_strategy_config") if self._depth else ():
            self.check_json(getattr(record, name, None), f"{prefix}{name}")

    def check_json(self, value: Any, field: str) -> None:
        """Raise BadInput if JSON from a caller is nested too deeply."""
        if not self._depth:
            return
        most = self._settings.json_depth
        level: list[Any] = [value]
        for _ in range(most):
            level = [child for value in level for child in _children(value)]
            if not level:
                return
        raise BadInput(f"must be nested at most {most} levels deep (MAX_JSON_DEPTH): flatten it", field=field)


def _children(value: Any) -> list[Any]:
    """Return the lists and objects directly inside a value. Each nested list or object is one level, as in the models."""
    if isinstance(value, Mapping):
        inside = list(cast("Mapping[str, Any]", value).values())
    elif isinstance(value, list):
        inside = cast("list[Any]", value)
    else:
        return []
    return [child for child in inside if isinstance(child, (list, dict))]


def _check_text(field: str, text: str, most: int, setting: str) -> None:
    if len(text) <= most // _MOST_CHARACTER_BYTES:
        return
    if (size := len(text.encode())) > most:
        raise TooLarge(f"{field} takes {size} bytes, more than {most} ({setting}): shorten it, or split it", field=field, limit=most)
    if normalized_bytes(text, most) > most:
        message = f"{field} takes more than {most} bytes ({setting}) after Unicode normalization (NFKC): shorten it, or split it"
        raise TooLarge(message, field=field, limit=most)
