"""Match tool calls with their results, count media, and find places to split sessions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar, cast

from agent_memory_client.models import MemoryMessage
from agent_memory_client.models.chat import TEXT_PARTS

# Rough number of tokens for an image, a sound or a file. Its size in bytes does not predict the number.
MEDIA_TOKENS = 1000
_MEDIA = re.compile(r"image|audio|video|file|document")
_DATA_URL = re.compile(r"data:[^,]{0,200};base64,")
_BASE64 = re.compile(r"[A-Za-z0-9+/_=-]++")
_SHORTEST_DATA = 512


class ToolCallLinks(NamedTuple):
    """The ids of the tool calls that a message makes, and of those whose results it contains."""

    calls: Sequence[str]
    answers: Sequence[str]


class OrderedMessage(Protocol):
    @property
    def links(self) -> ToolCallLinks | None:
        """The message's tool calls and results, or None for plain text."""
        ...


def links_of(role: str, parts: Sequence[Any] | None, fields: Mapping[str, Any]) -> ToolCallLinks:
    """Return the ids of the tool calls that a message makes or contains results for."""
    calls = [str(call["id"]) for call in _objects(fields.get("tool_calls")) if call.get("id")]
    answers = [str(fields["tool_call_id"])] if fields.get("tool_call_id") else []
    function = fields.get("function_call")
    if isinstance(function, dict):
        # A function call has no id. The next answer with its name belongs to it.
        calls.append(f"function {cast('dict[str, Any]', function).get('name')}")
    if role == "function" and fields.get("name"):
        answers.append(f"function {fields['name']}")
    for part in _objects(parts):
        kind = str(part.get("type"))
        if answered := part.get("tool_use_id"):
            answers.append(str(answered))
        elif kind.endswith("tool_use") and part.get("id"):
            calls.append(str(part["id"]))
        elif part.get("toolCallId"):
            (answers if kind.endswith("result") else calls).append(str(part["toolCallId"]))
    return ToolCallLinks(calls, answers)


def _objects(values: Any) -> Iterator[dict[str, Any]]:
    for value in cast("list[Any]", values) if isinstance(values, (list, tuple)) else ():
        if isinstance(value, dict):
            yield cast("dict[str, Any]", value)


def lacks_calls(messages: Sequence[OrderedMessage]) -> bool:
    """True if any message contains a tool result whose call does not come before it."""
    call_ids: set[str] = set()
    for message in messages:
        if (links := message.links) is not None:
            call_ids.update(links.calls)
            if not call_ids.issuperset(links.answers):
                return True
    return False


def whole_from(messages: Sequence[OrderedMessage], start: int) -> int:
    """Return a position where a split keeps tool calls and their results together.

    Prefers the first such position at or after `start`, then the last one before it.
    """
    if start <= 0 or not any(message.links for message in messages):
        return max(start, 0)
    parted = _parted(messages)
    return next(
        (place for place in range(start, len(messages)) if not parted[place]),
        next((place for place in range(start - 1, 0, -1) if not parted[place]), 0),
    )


Message = TypeVar("Message", bound=OrderedMessage)


def whole_window(messages: Sequence[Message], fit: int, total: int) -> tuple[list[Message], bool]:
    """Return about the last `fit` messages, keeping tool calls and their results together.

    The second value is True if a message contains the result of a call from before `messages`.
    `total` is the number of messages in the session.
    """
    start = len(messages) - fit
    if start <= 0:
        return list(messages), False
    place = whole_from(messages, start)
    return list(messages[place:]), place == 0 and len(messages) < total and lacks_calls(messages)


def _parted(messages: Sequence[OrderedMessage]) -> list[bool]:
    """Flag each message if a split before it would separate a tool call from its result."""
    called: dict[str, int] = {}
    steps = [0] * (len(messages) + 1)
    for place, message in enumerate(messages):
        if (links := message.links) is None:
            continue
        called.update(dict.fromkeys(links.calls, place))
        if links.answers:
            # A cut between the first of these calls and this answer would separate them.
            steps[min(called.get(answer, place - 1) for answer in links.answers) + 1] += 1
            steps[place + 1] -= 1
    depth, parted = 0, list[bool]()
    for step in steps[:-1]:
        depth += step
        parted.append(depth > 0)
    return parted


def counted(message: MemoryMessage) -> tuple[str, int]:
    """Return a message's text for a model, and an estimate of its media tokens."""
    parts, fields = message.content_parts, message.own_fields
    if not (parts or fields):
        return message.content, 0
    rest: list[Any] = [part for part in parts or () if not _is_text(part)]
    rest += [{name: value} for name, value in fields.items() if value not in (None, "", [], {})]
    if not rest:
        return message.content, 0
    media = [0]
    readable_parts = [_without_media(part, media) for part in rest]
    texts = [json.dumps(part, ensure_ascii=False) for part in readable_parts if part is not None]
    return "\n".join([message.content, *texts]), media[0] * MEDIA_TOKENS


def _is_text(part: Any) -> bool:
    return isinstance(part, Mapping) and cast("Mapping[str, Any]", part).get("type") in TEXT_PARTS


def _without_media(value: Any, media_count: list[int]) -> Any:
    """Remove encoded media from a value, and add the number removed to `media_count`."""
    if isinstance(value, str):
        if _is_data(value):
            media_count[0] += 1
            return ""
        return value
    if isinstance(value, list):
        return [_without_media(item, media_count) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    fields = cast("dict[str, Any]", value)
    before = media_count[0]
    cleaned = {name: _without_media(item, media_count) for name, item in fields.items()}
    kind = fields.get("type")
    if media_count[0] == before and isinstance(kind, str) and _MEDIA.search(kind) and not kind.startswith("file_"):
        # The part contains only the medium's address or id, no data.
        media_count[0] += 1
    return cleaned


def _is_data(text: str) -> bool:
    return _DATA_URL.match(text) is not None or (len(text) >= _SHORTEST_DATA and _BASE64.fullmatch(text) is not None)
