"""Read the conversation in a model request, and add context to the request.

Each API has its own format. The functions do not change their arguments. They return messages in
the chat completions format, excluding instructions (`system`, `developer`). They accept any JSON,
because the model's server rejects invalid requests.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any, TypeAlias, cast

from pydantic_core import to_json

Body: TypeAlias = dict[str, Any]
Message: TypeAlias = dict[str, Any]

INSTRUCTIONS = frozenset({"system", "developer"})
_CHAT_FIELDS = ("role", "content", "name", "tool_calls", "tool_call_id")
# Longer strings outside text parts are encoded files. A session keeps only their digest, except for pictures, which a
# model describes. A message with larger pictures would exceed the server's limit.
_MAX_PART_CHARS = 2048
_MAX_PICTURE_BYTES = 6 * 1024 * 1024


def objects(value: Any) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects in a list, or nothing if `value` is not a list."""
    for item in cast("list[Any]", value) if isinstance(value, list) else ():
        if isinstance(item, dict):
            yield cast("dict[str, Any]", item)


def tool_call(call_id: Any, name: Any, arguments: Any) -> dict[str, Any]:
    """Return a tool call in the chat completions format. `arguments` is JSON text."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def chat_messages(body: Body) -> list[Message]:
    return [{name: message[name] for name in _CHAT_FIELDS if name in message} for message in _turns(body.get("messages"))]


def with_chat_context(body: Body, text: str) -> Body:
    """Add text to the first instruction, or insert an instruction at the start.

    Many chat templates accept an instruction only at the start.
    """
    messages: list[Any] = list(body["messages"])
    first = messages[0]
    if isinstance(first, dict) and cast("Message", first).get("role") in INSTRUCTIONS:
        instruction = cast("Message", first)
        messages[0] = {**instruction, "content": _joined(instruction.get("content"), text)}
    else:
        messages.insert(0, {"role": "system", "content": text})
    return {**body, "messages": messages}


def responses_messages(body: Body) -> list[Message]:
    body_input = body.get("input")
    if isinstance(body_input, str):
        return [{"role": "user", "content": body_input}]
    return [message for item in objects(body_input) if (message := _message_of_item(item)) is not None]


def _message_of_item(item: Mapping[str, Any]) -> Message | None:
    kind = item.get("type", "message")
    if kind == "function_call":
        call = tool_call(item.get("call_id"), item.get("name"), item.get("arguments"))
        return {"role": "assistant", "content": None, "tool_calls": [call]}
    if kind == "function_call_output":
        return {"role": "tool", "content": item.get("output"), "tool_call_id": item.get("call_id")}
    if kind != "message" or not _is_turn(item):
        return None
    return {"role": item["role"], "content": item.get("content")}


def with_responses_context(body: Body, text: str) -> Body:
    """Add text to the instructions, because the API does not keep them for the next response."""
    return {**body, "instructions": _joined(body.get("instructions"), text)}


def anthropic_messages(body: Body) -> list[Message]:
    messages: list[Message] = []
    for message in _turns(body.get("messages")):
        content = message.get("content")
        if isinstance(content, str):
            messages.append({"role": message["role"], "content": content})
            continue
        blocks = list(objects(content))
        messages += [
            {"role": "tool", "content": block.get("content"), "tool_call_id": block.get("tool_use_id")}
            for block in blocks
            if block.get("type") == "tool_result"
        ]
        rest = [block for block in blocks if block.get("type") not in ("tool_result", "tool_use", "thinking", "redacted_thinking")]
        calls = [block for block in blocks if block.get("type") == "tool_use"]
        if rest or calls:
            made = [tool_call(block.get("id"), block.get("name"), json.dumps(block.get("input"))) for block in calls]
            messages.append({"role": message["role"], "content": rest or None, **({"tool_calls": made} if made else {})})
    return messages


def with_anthropic_context(body: Body, text: str) -> Body:
    return {**body, "system": _joined(body.get("system"), text)}


def without_files(value: Any) -> Any:
    """Replace each encoded file in a message's content with its digest. Text is not changed."""
    if isinstance(value, list):
        return [without_files(item) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return {name: item if name == "text" else without_files(item) for name, item in fields.items()}
    if isinstance(value, str) and len(value) > _MAX_PART_CHARS:
        return f"sha256:{sha256(value.encode(errors='surrogatepass')).hexdigest()}"
    return value


def with_pictures(parts: list[Any]) -> list[Any]:
    """Like `without_files`, but keep images unless their total size is too large."""
    pictures = [_is_picture(part) for part in parts]
    size = sum(len(to_json(part)) for part, picture in zip(parts, pictures, strict=True) if picture)
    if size > _MAX_PICTURE_BYTES:
        return without_files(parts)
    return [part if picture else without_files(part) for part, picture in zip(parts, pictures, strict=True)]


def _is_picture(part: Any) -> bool:
    return isinstance(part, dict) and "image" in str(cast("dict[str, Any]", part).get("type"))


def _turns(messages: Any) -> Iterator[Message]:
    return (message for message in objects(messages) if _is_turn(message))


def _is_turn(message: Mapping[str, Any]) -> bool:
    role = message.get("role")
    return isinstance(role, str) and role not in INSTRUCTIONS


def _joined(content: Any, text: str) -> Any:
    if isinstance(content, list):
        return [*cast("list[Any]", content), {"type": "text", "text": text}]
    return f"{content}\n\n{text}" if isinstance(content, str) and content else text
