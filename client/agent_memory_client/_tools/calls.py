"""Convert tool calls from all providers to a common format."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal, TypedDict, cast

from agent_memory_client.errors import MemoryValidationError


class UnifiedToolCall(TypedDict):
    """A model's tool call in a common format for all providers."""

    id: str | None
    name: str
    arguments: dict[str, Any]
    provider: Literal["openai", "anthropic", "generic"]


class ToolCallResolutionResult(TypedDict):
    """The result of a tool call: `result` for programs, `formatted_response` for the model.

    `error` is None if the call succeeded.
    """

    success: bool
    function_name: str
    result: Any | None
    error: str | None
    formatted_response: str


def arguments_of(arguments: Any) -> dict[str, Any]:
    """Parse a call's arguments from a mapping or JSON text.

    None and blank text mean no arguments. Raises MemoryValidationError.
    """
    if arguments is None or (isinstance(arguments, str) and not arguments.strip()):
        return {}
    value: Any = arguments
    if isinstance(arguments, (str, bytes)):
        try:
            value = json.loads(arguments)
        except (ValueError, RecursionError) as error:
            raise MemoryValidationError(f"arguments: not valid JSON ({error}): send one JSON object") from error
    if not isinstance(value, Mapping):
        raise MemoryValidationError(f"arguments: must be one JSON object, got {type(value).__name__}")
    return {str(key): item for key, item in cast("Mapping[Any, Any]", value).items()}


def call_of(tool_call: Any) -> dict[str, Any]:
    """Convert a tool call to a dict. Accepts a dict or a provider's object.

    Raises MemoryValidationError.
    """
    dump = getattr(tool_call, "model_dump", None)
    value: Any = dump() if callable(dump) else tool_call
    if not isinstance(value, Mapping):
        raise MemoryValidationError(f"tool_call: must be a dict with the tool's name and arguments, got {type(value).__name__}")
    return dict(cast("Mapping[str, Any]", value))


def name_of(tool_call: Any) -> str:
    """Return the name of the called tool, or "unknown"."""
    try:
        call = call_of(tool_call)
    except MemoryValidationError:
        return "unknown"
    function = call.get("function")
    holder = cast("Mapping[str, Any]", function) if isinstance(function, Mapping) else call
    return str(holder.get("name") or "unknown")


def _unify(call_id: Any, name: Any, arguments: Any, provider: Literal["openai", "anthropic", "generic"]) -> UnifiedToolCall:
    if not isinstance(name, str) or not name:
        raise MemoryValidationError("name: is required: a tool call must name the tool")
    return UnifiedToolCall(id=None if call_id is None else str(call_id), name=name, arguments=arguments_of(arguments), provider=provider)


def parse_function_call(function_call: dict[str, Any]) -> UnifiedToolCall:
    """Parse a call in OpenAI's legacy function format or Responses API format."""
    call = call_of(function_call)
    return _unify(call.get("call_id"), call.get("name"), call.get("arguments"), "openai")


def parse_openai_call(tool_call: dict[str, Any]) -> UnifiedToolCall:
    """Parse a tool call in OpenAI's chat completion format."""
    call = call_of(tool_call)
    function = call_of(call.get("function"))
    return _unify(call.get("id", ""), function.get("name"), function.get("arguments"), "openai")


def parse_anthropic_call(tool_use: dict[str, Any]) -> UnifiedToolCall:
    """Parse an Anthropic content block: `{"type": "tool_use", "id", "name", "input"}`."""
    call = call_of(tool_use)
    return _unify(call.get("id", ""), call.get("name"), call.get("input"), "anthropic")


def parse_call(tool_call: dict[str, Any]) -> UnifiedToolCall:
    """Parse a tool call.

    Accepts the formats of OpenAI, Anthropic and LangChain, and `{"name", "arguments"}`. Raises MemoryValidationError if
    the name is missing, or if the arguments are not a JSON object.
    """
    call = call_of(tool_call)
    if "function" in call:
        return parse_openai_call(call)
    if "input" in call:
        return parse_anthropic_call(call)
    if "args" in call and "arguments" not in call:
        return _unify(call.get("id"), call.get("name"), call["args"], "generic")
    if "arguments" in call:
        return parse_function_call(call)
    return _unify(call.get("id"), call.get("name"), None, "generic")
