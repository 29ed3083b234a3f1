"""Extract tool calls and their outcomes from chat API or Anthropic messages."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from agent_memory.foundation.text.redaction import redact
from agent_memory_client.models import MemoryMessage
from agent_memory_client.models.features.procedures import MAX_STEP_CHARS, MAX_STEPS

MAX_EXAMPLE_CHARS = 1000
_MOST_VALUE_CHARS = 200
# Messages without a time get the time of the request, so a shorter duration is treated as unknown.
_LEAST_MS = 1.0
_MOST_ERROR_CHARS = 300
_MOST_ARGUMENTS = 32
_MOST_NAME_CHARS = 128
_SECRET_NAMES = ("password", "passwd", "secret", "token", "api_key", "apikey", "authorization", "credential", "private_key", "cookie")
_REDACTED = "[redacted: key]"
_FAILURE_WORDS = ("error", "exception", "traceback", "failed", "failure", "fatal")
_TYPES: tuple[tuple[type[Any], str], ...] = (
    (bool, "boolean"),
    (int, "integer"),
    (float, "number"),
    (str, "string"),
    (list, "array"),
    (dict, "object"),
)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call. `answered` is the number of the message that contains the result."""

    tool: str
    arguments: Mapping[str, Any]
    success: bool
    answered: int
    ms: float | None = None
    cost: float | None = None
    error: str | None = None


def tool_calls(messages: Sequence[tuple[int, MemoryMessage]]) -> list[ToolCall]:
    """Return the completed calls, in the order of their results.

    `messages` are (number, message) pairs.
    """
    open_calls: dict[str, tuple[str, Mapping[str, Any], datetime]] = {}
    calls: list[ToolCall] = []
    for number, message in messages:
        for call_id, tool, arguments in _calls_in(message):
            open_calls[call_id] = (tool, arguments, message.created_at)
        for call_id, content, failed in _answered_by(message):
            if call_id in open_calls:
                tool, arguments, called_at = open_calls.pop(call_id)
                wrong = reads_as_failure(content) if failed is None else failed
                elapsed = (message.created_at - called_at).total_seconds() * 1000
                ms = _number(message.own_fields.get("duration_ms"))
                ms = ms if ms is not None else elapsed if elapsed >= _LEAST_MS else None
                error = " ".join(content[: 4 * _MOST_ERROR_CHARS].split())[:_MOST_ERROR_CHARS] if wrong else None
                calls.append(ToolCall(tool, arguments, not wrong, number, ms, _number(message.own_fields.get("cost")), error))
    return calls


def _calls_in(message: MemoryMessage) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    for call in _objects(message.own_fields.get("tool_calls")):
        function = call.get("function")
        body = cast("dict[str, Any]", function) if isinstance(function, dict) else call
        name = body.get("name")
        if call.get("id") and isinstance(name, str) and name.strip():
            yield str(call["id"]), name.strip()[:_MOST_NAME_CHARS], _arguments(body.get("arguments", body.get("args")))
    for part in _objects(message.content_parts):
        name = part.get("name")
        if str(part.get("type")).endswith("tool_use") and part.get("id") and isinstance(name, str) and name.strip():
            yield str(part["id"]), name.strip()[:_MOST_NAME_CHARS], _arguments(part.get("input"))


def _answered_by(message: MemoryMessage) -> Iterator[tuple[str, str, bool | None]]:
    """Yield each tool result in a message, as (call id, text, failed).

    `failed` is None if unknown.
    """
    fields = message.own_fields
    if fields.get("tool_call_id"):
        yield str(fields["tool_call_id"]), message.content, _flag(fields)
    for part in _objects(message.content_parts):
        if part.get("tool_use_id"):
            content = part.get("content")
            text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)[:MAX_EXAMPLE_CHARS]
            yield str(part["tool_use_id"]), text, _flag(part)


def _flag(fields: Mapping[str, Any]) -> bool | None:
    if isinstance(fields.get("is_error"), bool):
        return bool(fields["is_error"])
    status = fields.get("status")
    return {"error": True, "success": False}.get(status) if isinstance(status, str) else None


def reads_as_failure(content: str) -> bool:
    """True if a result looks like an error. Use it only for results that have no failure flag."""
    head = content.lstrip()[:200]
    if head.startswith("{"):
        try:
            body = json.loads(content[: 64 * 1024])
        except (ValueError, RecursionError):
            body = {}
        if isinstance(body, dict):
            values = cast("dict[str, Any]", body)
            return bool(values.get("error")) or values.get("success") is False or values.get("ok") is False
    first = head.casefold().lstrip("[(<*# ").split(" ", 1)[0].rstrip(":!.,;])>*")
    return any(first.endswith(word) for word in _FAILURE_WORDS)


def shape_of(arguments: Mapping[str, Any]) -> str:
    """Return the arguments' names and JSON types, as JSON."""
    names = sorted(arguments)[:_MOST_ARGUMENTS]
    return json.dumps({name[:_MOST_NAME_CHARS]: _type_of(arguments[name]) for name in names}, ensure_ascii=False)


def example_of(arguments: Mapping[str, Any], *, redacts: bool) -> str:
    """Encode arguments in at most MAX_EXAMPLE_CHARS characters of JSON.

    If `redacts` is set, redact secrets.
    """
    example: dict[str, Any] = {}
    for name in sorted(arguments)[:_MOST_ARGUMENTS]:
        example[name[:_MOST_NAME_CHARS]] = _shown_value(name, arguments[name], redacts=redacts)
        if len(json.dumps(example, ensure_ascii=False)) > MAX_EXAMPLE_CHARS:
            del example[name[:_MOST_NAME_CHARS]]
    return json.dumps(example, ensure_ascii=False)


def step_of(call: ToolCall, *, redacts: bool) -> str:
    """Format a call as a procedure step: "Call <tool> with <arguments>"."""
    example = example_of(call.arguments, redacts=redacts)
    return f"Call {call.tool}" + (f" with {example}" if call.arguments else "")


def steps_of(calls: Sequence[ToolCall], *, redacts: bool) -> list[str]:
    """Return the successful calls as steps, skipping immediate repetitions."""
    steps: list[str] = []
    for call in calls:
        step = step_of(call, redacts=redacts)[:MAX_STEP_CHARS]
        if call.success and (not steps or steps[-1] != step):
            steps.append(step)
    return steps[:MAX_STEPS]


def failures_of(calls: Sequence[ToolCall], *, redacts: bool) -> list[str]:
    """Return the distinct failed calls with their errors."""
    failures: dict[str, None] = {}
    for call in calls:
        if not call.success:
            error_text = clean(call.error or "", redacts=redacts)
            failures[f"{step_of(call, redacts=redacts)}: {error_text}"[:MAX_STEP_CHARS]] = None
    return list(failures)[:MAX_STEPS]


def clean(text: str, *, redacts: bool) -> str:
    return redact(text) if redacts else text


def _shown_value(name: str, value: Any, *, redacts: bool) -> Any:
    if redacts and _is_secret(name):
        return _REDACTED
    if isinstance(value, bool | int | float) or value is None:
        # A number may be a credit card number.
        return value if not redacts or redact(str(value)) == str(value) else redact(str(value))
    if isinstance(value, str):
        return clean(value[: 4 * _MOST_VALUE_CHARS], redacts=redacts)[:_MOST_VALUE_CHARS]
    if redacts:
        value = _without_secrets(value)
    text = json.dumps(value, ensure_ascii=False)
    return value if len(text) <= _MOST_VALUE_CHARS else f"{text[:_MOST_VALUE_CHARS]}…"


def _without_secrets(value: Any, depth: int = 8) -> Any:
    if depth == 0:
        return "…"
    if isinstance(value, dict):
        inner = list(cast("dict[str, Any]", value).items())[:_MOST_ARGUMENTS]
        return {name: _REDACTED if _is_secret(name) else _without_secrets(item, depth - 1) for name, item in inner}
    if isinstance(value, list):
        return [_without_secrets(item, depth - 1) for item in cast("list[Any]", value)[:_MOST_ARGUMENTS]]
    return redact(value[: 4 * _MOST_VALUE_CHARS]) if isinstance(value, str) else value


def _is_secret(name: str) -> bool:
    return any(word in name.casefold().replace("-", "_") for word in _SECRET_NAMES)


def _type_of(value: Any) -> str:
    return next((name for kind, name in _TYPES if isinstance(value, kind)), "null")


def _arguments(value: Any) -> Mapping[str, Any]:
    """Parse arguments given as an object or as JSON text. Return {} for anything else."""
    if isinstance(value, str):
        try:
            value = json.loads(value[: 64 * 1024])
        except (ValueError, RecursionError):
            return {}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 2**53 else None


def _objects(values: Any) -> Iterator[dict[str, Any]]:
    for value in cast("list[Any]", values) if isinstance(values, (list, tuple)) else ():
        if isinstance(value, dict):
            yield cast("dict[str, Any]", value)
