"""Tools for language models, without the network: their schemas, and the calls that providers make of them in one shape."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal, TypedDict, cast

from agent_memory_client import _tool_definitions as definitions
from agent_memory_client.errors import MemoryValidationError
from agent_memory_client.tool_schema import SchemaFormat, ToolSchema, ToolSchemaCollection


class UnifiedToolCall(TypedDict):
    """A model's call of a tool, whoever the provider is."""

    id: str | None
    name: str
    arguments: dict[str, Any]
    provider: Literal["openai", "anthropic", "generic"]


class ToolCallResolutionResult(TypedDict):
    """What came of a tool call. `result` is for programs, `formatted_response` for the model; `error` is None on success."""

    success: bool
    function_name: str
    result: Any | None
    error: str | None
    formatted_response: str


def arguments_of(given: Any) -> dict[str, Any]:
    """A call's arguments: a mapping, or a JSON object as text; None and blank text are no arguments. Raises MemoryValidationError."""
    if given is None or (isinstance(given, str) and not given.strip()):
        return {}
    value: Any = given
    if isinstance(given, (str, bytes)):
        try:
            value = json.loads(given)
        except (ValueError, RecursionError) as error:
            raise MemoryValidationError(f"the arguments are not valid JSON ({error}): send one JSON object") from error
    if not isinstance(value, Mapping):
        raise MemoryValidationError(f"the arguments must be one JSON object, got {type(value).__name__}")
    return {str(key): item for key, item in cast("Mapping[Any, Any]", value).items()}


def call_of(tool_call: Any) -> dict[str, Any]:
    """A tool call as a dict: it may come as one, or as an object of a provider's package. Raises MemoryValidationError."""
    dump = getattr(tool_call, "model_dump", None)
    value: Any = dump() if callable(dump) else tool_call
    if not isinstance(value, Mapping):
        raise MemoryValidationError(f"a tool call must be a dict with the tool's name and arguments, got {type(value).__name__}")
    return dict(cast("Mapping[str, Any]", value))


def name_of(tool_call: Any) -> str:
    """The name of the tool that is called, as far as it can be told."""
    try:
        call = call_of(tool_call)
    except MemoryValidationError:
        return "unknown"
    function = call.get("function")
    holder = cast("Mapping[str, Any]", function) if isinstance(function, Mapping) else call
    return str(holder.get("name") or "unknown")


def _unified(call_id: Any, name: Any, arguments: Any, provider: Literal["openai", "anthropic", "generic"]) -> UnifiedToolCall:
    if not isinstance(name, str) or not name:
        raise MemoryValidationError("a tool call must say the name of the tool")
    return UnifiedToolCall(id=None if call_id is None else str(call_id), name=name, arguments=arguments_of(arguments), provider=provider)


class Tools:
    """The schemas of the nine tools, and the reading of calls: methods that send nothing.

    The `parse_` methods raise MemoryValidationError, a ValueError, for calls without a name and for arguments that are not a
    JSON object.
    """

    @staticmethod
    def parse_openai_function_call(function_call: dict[str, Any]) -> UnifiedToolCall:
        """A function call as OpenAI had it first, `{"name", "arguments"}`, or as its Responses API has it (with a `call_id`)."""
        call = call_of(function_call)
        return _unified(call.get("call_id"), call.get("name"), call.get("arguments"), "openai")

    @staticmethod
    def parse_openai_tool_call(tool_call: dict[str, Any]) -> UnifiedToolCall:
        """A tool call of OpenAI's chat completions: `{"id", "type": "function", "function": {"name", "arguments"}}`."""
        call = call_of(tool_call)
        function = call_of(call.get("function"))
        return _unified(call.get("id", ""), function.get("name"), function.get("arguments"), "openai")

    @staticmethod
    def parse_anthropic_tool_use(tool_use: dict[str, Any]) -> UnifiedToolCall:
        """A block of Anthropic's: `{"type": "tool_use", "id", "name", "input"}`."""
        call = call_of(tool_use)
        return _unified(call.get("id", ""), call.get("name"), call.get("input"), "anthropic")

    @staticmethod
    def parse_tool_call(tool_call: dict[str, Any]) -> UnifiedToolCall:
        """A call in any of these shapes, in LangChain's (`{"name", "args", "id"}`), or as plain `{"name", "arguments"}`."""
        call = call_of(tool_call)
        if "function" in call:
            return Tools.parse_openai_tool_call(call)
        if "input" in call:
            return Tools.parse_anthropic_tool_use(call)
        if "args" in call and "arguments" not in call:
            return _unified(call.get("id"), call.get("name"), call["args"], "generic")
        if "arguments" in call:
            return Tools.parse_openai_function_call(call)
        return _unified(call.get("id"), call.get("name"), None, "generic")

    @classmethod
    def get_all_memory_tool_schemas(cls) -> ToolSchemaCollection:
        """All nine tools in OpenAI's shape: `tools=MemoryAPIClient.get_all_memory_tool_schemas().to_list()`."""
        return _collection("openai")

    @classmethod
    def get_all_memory_tool_schemas_anthropic(cls) -> ToolSchemaCollection:
        """All nine tools in Anthropic's shape."""
        return _collection("anthropic")

    @classmethod
    def get_memory_search_tool_schema(cls) -> ToolSchema:
        """The tool for searching long-term memory, in OpenAI's shape."""
        return _schema(definitions.SEARCH_MEMORY, "openai")

    @classmethod
    def get_memory_search_tool_schema_anthropic(cls) -> ToolSchema:
        """The tool for searching long-term memory, in Anthropic's shape."""
        return _schema(definitions.SEARCH_MEMORY, "anthropic")

    @classmethod
    def get_working_memory_tool_schema(cls) -> ToolSchema:
        """The tool for reading the conversation's working memory, in OpenAI's shape."""
        return _schema(definitions.GET_OR_CREATE_WORKING_MEMORY, "openai")

    @classmethod
    def get_working_memory_tool_schema_anthropic(cls) -> ToolSchema:
        """The tool for reading the conversation's working memory, in Anthropic's shape."""
        return _schema(definitions.GET_OR_CREATE_WORKING_MEMORY, "anthropic")

    @classmethod
    def get_lazily_create_long_term_memory_tool_schema(cls) -> ToolSchema:
        """The tool for noting a memory in the conversation, to be promoted later, in OpenAI's shape."""
        return _schema(definitions.LAZILY_CREATE_LONG_TERM_MEMORY, "openai")

    @classmethod
    def get_lazily_create_long_term_memory_tool_schema_anthropic(cls) -> ToolSchema:
        """The tool for noting a memory in the conversation, to be promoted later, in Anthropic's shape."""
        return _schema(definitions.LAZILY_CREATE_LONG_TERM_MEMORY, "anthropic")

    @classmethod
    def get_update_memory_data_tool_schema(cls) -> ToolSchema:
        """The tool for keeping structured data with the conversation, in OpenAI's shape."""
        return _schema(definitions.UPDATE_WORKING_MEMORY_DATA, "openai")

    @classmethod
    def get_update_memory_data_tool_schema_anthropic(cls) -> ToolSchema:
        """The tool for keeping structured data with the conversation, in Anthropic's shape."""
        return _schema(definitions.UPDATE_WORKING_MEMORY_DATA, "anthropic")

    @classmethod
    def get_long_term_memory_tool_schema(cls) -> ToolSchema:
        """The tool for reading one long-term memory, in OpenAI's shape."""
        return _schema(definitions.GET_LONG_TERM_MEMORY, "openai")

    @classmethod
    def get_long_term_memory_tool_schema_anthropic(cls) -> ToolSchema:
        """The tool for reading one long-term memory, in Anthropic's shape."""
        return _schema(definitions.GET_LONG_TERM_MEMORY, "anthropic")

    @classmethod
    def get_eagerly_create_long_term_memory_tool_schema(cls) -> ToolSchema:
        """The tool for storing long-term memories at once, in OpenAI's shape."""
        return _schema(definitions.EAGERLY_CREATE_LONG_TERM_MEMORY, "openai")

    @classmethod
    def get_eagerly_create_long_term_memory_tool_schema_anthropic(cls) -> ToolSchema:
        """The tool for storing long-term memories at once, in Anthropic's shape."""
        return _schema(definitions.EAGERLY_CREATE_LONG_TERM_MEMORY, "anthropic")

    @classmethod
    def edit_long_term_memory_tool_schema(cls) -> ToolSchema:
        """The tool for changing a long-term memory, in OpenAI's shape."""
        return _schema(definitions.EDIT_LONG_TERM_MEMORY, "openai")

    @classmethod
    def edit_long_term_memory_tool_schema_anthropic(cls) -> ToolSchema:
        """The tool for changing a long-term memory, in Anthropic's shape."""
        return _schema(definitions.EDIT_LONG_TERM_MEMORY, "anthropic")

    @classmethod
    def delete_long_term_memories_tool_schema(cls) -> ToolSchema:
        """The tool for deleting long-term memories, in OpenAI's shape."""
        return _schema(definitions.DELETE_LONG_TERM_MEMORIES, "openai")

    @classmethod
    def delete_long_term_memories_tool_schema_anthropic(cls) -> ToolSchema:
        """The tool for deleting long-term memories, in Anthropic's shape."""
        return _schema(definitions.DELETE_LONG_TERM_MEMORIES, "anthropic")

    @classmethod
    def get_current_datetime_tool_schema(cls) -> ToolSchema:
        """The tool for telling the time, in OpenAI's shape."""
        return _schema(definitions.GET_CURRENT_DATETIME, "openai")

    @classmethod
    def get_current_datetime_tool_schema_anthropic(cls) -> ToolSchema:
        """The tool for telling the time, in Anthropic's shape."""
        return _schema(definitions.GET_CURRENT_DATETIME, "anthropic")


def _schema(name: str, schema_format: SchemaFormat) -> ToolSchema:
    schema = definitions.BY_NAME[name].schema()
    return schema if schema_format == "openai" else schema.to_anthropic()


def _collection(schema_format: SchemaFormat) -> ToolSchemaCollection:
    return ToolSchemaCollection([_schema(name, schema_format) for name in definitions.BY_NAME])
