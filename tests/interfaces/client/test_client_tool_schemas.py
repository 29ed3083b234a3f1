"""Check the nine tools' schemas against the contract, and test customizing them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agent_memory_client import MemoryAPIClient, SyncMemoryAPIClient, ToolSchema, ToolSchemaCollection

SCHEMAS: dict[str, dict[str, Any]] = json.loads((Path(__file__).parents[2] / "compat" / "contract" / "contract.json").read_text())[
    "llm_tool_schemas"
]
BUILDERS = {
    "search_memory": "get_memory_search_tool_schema",
    "get_or_create_working_memory": "get_working_memory_tool_schema",
    "lazily_create_long_term_memory": "get_lazily_create_long_term_memory_tool_schema",
    "update_working_memory_data": "get_update_memory_data_tool_schema",
    "get_long_term_memory": "get_long_term_memory_tool_schema",
    "eagerly_create_long_term_memory": "get_eagerly_create_long_term_memory_tool_schema",
    "edit_long_term_memory": "edit_long_term_memory_tool_schema",
    "delete_long_term_memories": "delete_long_term_memories_tool_schema",
    "get_current_datetime": "get_current_datetime_tool_schema",
}


def bare(value: Any, names: bool = False) -> Any:
    """Remove all descriptions from a schema. `names` is True if the keys are parameter names."""
    if isinstance(value, dict):
        return {key: bare(item, key == "properties") for key, item in value.items() if names or key != "description"}
    return [bare(item) for item in value] if isinstance(value, list) else value


def undescribed(value: dict[str, Any]) -> list[str]:
    """Return the parameters that have no description."""
    found: list[str] = []
    for name, rule in value.get("properties", {}).items():
        found += [] if rule.get("description") else [name]
        found += undescribed(rule.get("items", {}))
    return found


@pytest.mark.parametrize("kind", [MemoryAPIClient, SyncMemoryAPIClient])
@pytest.mark.parametrize("name", SCHEMAS)
def test_tool_schemas_match_the_contract(name: str, kind: type[Any]) -> None:
    openai = getattr(kind, BUILDERS[name])()
    assert openai.format == "openai"
    plain = openai.to_dict()
    assert plain["type"] == "function"
    assert plain["function"]["name"] == openai.get_name() == name
    assert bare(plain["function"]["parameters"]) == SCHEMAS[name]
    anthropic = getattr(kind, f"{BUILDERS[name]}_anthropic")()
    assert anthropic.format == "anthropic"
    assert anthropic.to_dict() == {
        "name": name,
        "description": plain["function"]["description"],
        "input_schema": plain["function"]["parameters"],
    }
    assert undescribed(plain["function"]["parameters"]) == []
    assert len(openai.get_description()) > 40


def test_schema_collections_contain_all_nine_tools() -> None:
    openai, anthropic = MemoryAPIClient.get_all_memory_tool_schemas(), MemoryAPIClient.get_all_memory_tool_schemas_anthropic()
    assert openai.names() == anthropic.names() == list(BUILDERS)
    assert [schema["function"]["name"] for schema in openai.to_list()] == [schema["name"] for schema in anthropic.to_list()]
    assert json.loads(json.dumps(openai.to_list())) == openai.to_list()
    assert len(openai) == 9
    assert openai[0].get_name() == next(iter(openai)).get_name() == "search_memory"
    assert "search_memory" in repr(openai)


@pytest.mark.parametrize("builder", ["get_memory_search_tool_schema", "get_memory_search_tool_schema_anthropic"])
def test_schema_name_and_descriptions_can_be_changed(builder: str) -> None:
    schema: ToolSchema = getattr(MemoryAPIClient, builder)()
    changed = schema.copy().set_name("recall").set_description("Recalls.").set_parameter_description("query", "What?")
    assert (changed.get_name(), changed.get_description(), changed.get_parameter_description("query")) == ("recall", "Recalls.", "What?")
    assert changed.get_parameter_description("none") is None
    assert (schema.get_name(), getattr(MemoryAPIClient, builder)().get_name()) == ("search_memory", "search_memory")
    with pytest.raises(KeyError, match="no parameter 'none'"):
        changed.set_parameter_description("none", "x")
    assert repr(changed) == f"ToolSchema(name='recall', format={schema.format!r})"
    changed.to_dict()["name"] = "other"
    assert changed.get_name() == "recall"


def test_schema_works_as_a_dict() -> None:
    schema = MemoryAPIClient.get_memory_search_tool_schema()
    assert schema["type"] == "function"
    assert "function" in schema
    assert "strict" not in schema
    schema["strict"] = True
    assert schema.to_dict()["strict"] is True


def test_a_collection_changes_tools_by_name() -> None:
    tools = MemoryAPIClient.get_all_memory_tool_schemas()
    apart = tools.copy().set_description("search_memory", "Searches.").set_name("search_memory", "recall")
    found = apart.get_by_name("recall")
    assert found
    assert found.get_description() == "Searches."
    assert tools.get_by_name("recall") is None
    for change in (lambda: tools.set_name("none", "x"), lambda: tools.set_description("none", "x")):
        with pytest.raises(KeyError, match="no tool 'none'"):
            change()


@pytest.mark.parametrize("schema", [ToolSchema({}), ToolSchema({"function": 1}), ToolSchema({"function": {}}), ToolSchema({}, "anthropic")])
def test_invalid_schema_raises_value_error(schema: ToolSchema) -> None:
    for read in (schema.get_name, schema.get_description, lambda: schema.get_parameter_description("x")):
        with pytest.raises(ValueError, match="not a tool schema"):
            read()
    with pytest.raises(ValueError, match="not a tool schema"):
        ToolSchemaCollection([schema]).names()
