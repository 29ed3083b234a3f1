"""Tool schemas and parsers as client methods, under the archived client's names."""

from __future__ import annotations

from typing import Any

from agent_memory_client._tools import calls
from agent_memory_client._tools import definitions as tools
from agent_memory_client.tool_schema import SchemaFormat, ToolSchema, ToolSchemaCollection


def _schema(tool: str, schema_format: SchemaFormat = "openai") -> classmethod[Any, [], ToolSchema]:
    def get_schema(cls: type[Any]) -> ToolSchema:
        return tools.BY_NAME[tool].schema(schema_format)

    get_schema.__doc__ = f"The schema of the tool {tool} in {'OpenAI' if schema_format == 'openai' else 'Anthropic'}'s shape."
    return classmethod(get_schema)


class Tools:
    """Schemas for the nine memory tools, and parsers for tool calls. No method sends requests.

    The `parse_` methods raise MemoryValidationError (a ValueError) for a missing name or invalid
    arguments.
    """

    parse_openai_function_call = staticmethod(calls.parse_function_call)
    parse_openai_tool_call = staticmethod(calls.parse_openai_call)
    parse_anthropic_tool_use = staticmethod(calls.parse_anthropic_call)
    parse_tool_call = staticmethod(calls.parse_call)

    @classmethod
    def get_all_memory_tool_schemas(cls) -> ToolSchemaCollection:
        """Return the schemas of the archived client's nine tools in OpenAI's format.

        Use `tools=MemoryAPIClient.get_all_memory_tool_schemas().to_list()`.
        """
        return tools.schemas("openai", tools.ARCHIVED)

    @classmethod
    def get_all_memory_tool_schemas_anthropic(cls) -> ToolSchemaCollection:
        """Return the schemas of the archived client's nine tools in Anthropic's format."""
        return tools.schemas("anthropic", tools.ARCHIVED)

    get_memory_search_tool_schema = _schema(tools.SEARCH_MEMORY)
    get_memory_search_tool_schema_anthropic = _schema(tools.SEARCH_MEMORY, "anthropic")
    get_working_memory_tool_schema = _schema(tools.GET_OR_CREATE_WORKING_MEMORY)
    get_working_memory_tool_schema_anthropic = _schema(tools.GET_OR_CREATE_WORKING_MEMORY, "anthropic")
    get_lazily_create_long_term_memory_tool_schema = _schema(tools.LAZILY_CREATE_LONG_TERM_MEMORY)
    get_lazily_create_long_term_memory_tool_schema_anthropic = _schema(tools.LAZILY_CREATE_LONG_TERM_MEMORY, "anthropic")
    get_update_memory_data_tool_schema = _schema(tools.UPDATE_WORKING_MEMORY_DATA)
    get_update_memory_data_tool_schema_anthropic = _schema(tools.UPDATE_WORKING_MEMORY_DATA, "anthropic")
    get_long_term_memory_tool_schema = _schema(tools.GET_LONG_TERM_MEMORY)
    get_long_term_memory_tool_schema_anthropic = _schema(tools.GET_LONG_TERM_MEMORY, "anthropic")
    get_eagerly_create_long_term_memory_tool_schema = _schema(tools.EAGERLY_CREATE_LONG_TERM_MEMORY)
    get_eagerly_create_long_term_memory_tool_schema_anthropic = _schema(tools.EAGERLY_CREATE_LONG_TERM_MEMORY, "anthropic")
    edit_long_term_memory_tool_schema = _schema(tools.EDIT_LONG_TERM_MEMORY)
    edit_long_term_memory_tool_schema_anthropic = _schema(tools.EDIT_LONG_TERM_MEMORY, "anthropic")
    delete_long_term_memories_tool_schema = _schema(tools.DELETE_LONG_TERM_MEMORIES)
    delete_long_term_memories_tool_schema_anthropic = _schema(tools.DELETE_LONG_TERM_MEMORIES, "anthropic")
    forget_memory_tool_schema = _schema(tools.FORGET_MEMORY)
    forget_memory_tool_schema_anthropic = _schema(tools.FORGET_MEMORY, "anthropic")
    get_current_datetime_tool_schema = _schema(tools.GET_CURRENT_DATETIME)
    get_current_datetime_tool_schema_anthropic = _schema(tools.GET_CURRENT_DATETIME, "anthropic")
