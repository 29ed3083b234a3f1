"""Test portable tool schemas, tool sets, and tolerance for arguments that violate the schema."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any, get_args

import httpx
import pytest
from mcp.types import Tool as ListedTool
from pydantic import BaseModel

from agent_memory.foundation.core.mcp_tools import CHOICES, InvalidArguments, Tool, ToolChoice
from agent_memory.foundation.core.settings import load_settings
from agent_memory.foundation.llm.tokens import TokenCounter
from agent_memory.interfaces.http.app import create_app
from agent_memory.interfaces.mcp.server import LIST_TTL_MS, listed_tools
from agent_memory.interfaces.mcp.tools import TOOLS, chosen_tools
from tests.interfaces.mcp.conftest import Server
from tests.support.api import Recorded, serving
from tests.support.mcp import over_http

Schema = dict[str, Any]

GEMINI = {"type", "format", "description", "enum", "items", "properties", "required", "minimum", "maximum", "default", "anyOf"}
"""The part of the OpenAPI subset of Gemini's function declarations that strict-mode converters accept, too."""
ALL = [(choice, tool) for choice in CHOICES for tool in listed_tools(choice)]


def parts(schema: Schema) -> Iterator[Schema]:
    """Yield a schema and all its subschemas."""
    yield schema
    for part in (*schema.get("properties", {}).values(), *schema.get("anyOf", ()), *([schema["items"]] if "items" in schema else ())):
        yield from parts(part)


@pytest.mark.parametrize(("choice", "tool"), ALL, ids=lambda value: value if isinstance(value, str) else value.name)
def test_argument_schemas_use_only_portable_keywords(choice: ToolChoice, tool: ListedTool) -> None:
    assert tool.input_schema["type"] == "object"
    for part in parts(tool.input_schema):
        assert part.keys() <= GEMINI, part
        assert ("anyOf" in part) != isinstance(part.get("type"), str), part
        assert part.get("type") in {None, "object", "array", "string", "integer", "number", "boolean"}, part
        assert ("items" in part) == (part.get("type") == "array"), part
        assert set(part.get("required", ())) <= part.get("properties", {}).keys(), part
        assert part.get("format", "date-time") == "date-time", part
        assert part.get("default", "") is not None, part
        assert part.get("type") == "string" or "enum" not in part, part


def filled(schema: Schema, *, nulls: bool) -> Any:
    """Return a value with only the required fields. With `nulls`, set optional fields to null."""
    match schema.get("type"):
        case "object":
            required = schema.get("required", ())
            given = {name: filled(part, nulls=nulls) for name, part in schema.get("properties", {}).items() if name in required}
            others = {name: part for name, part in schema.get("properties", {}).items() if name not in required} if nulls else {}
            return given | {name: filled(part, nulls=True) if part.get("properties") else None for name, part in others.items()}
        case "array":
            return [filled(schema["items"], nulls=nulls)]
        case "string":
            return schema.get("enum", ["2026-03-01T00:00:00Z" if "format" in schema else "2026-03-01"])[0]
        case kind:
            return {"integer": 1, "number": 0.5, "boolean": True}[str(kind)]


def given(value: Any) -> Any:
    """Return a model's explicitly set fields, including nested ones."""
    if isinstance(value, list):
        return [given(item) for item in value]
    names: set[str] | None = getattr(value, "model_fields_set", None)
    return value if names is None else {name: given(getattr(value, name)) for name in names}


@pytest.mark.parametrize("tool", TOOLS.values(), ids=lambda tool: tool.name)
def test_null_optional_argument_counts_as_missing_at_any_depth(tool: Tool) -> None:
    (schema,) = [listed.input_schema for listed in listed_tools("all") if listed.name == tool.name]
    plain, _ = tool.read(filled(schema, nulls=False), strict=True)
    with_nulls, ignored = tool.read(filled(schema, nulls=True), strict=True)
    assert given(with_nulls) == given(plain)
    assert not ignored


def models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from models_in(part)


def with_unlisted_nulls(model: type[BaseModel], value: Any) -> Any:
    """Return the value with every optional field set to null, even fields that the schema omits."""
    fields = {field.alias or name: field for name, field in model.model_fields.items()}
    nulls = {name: None for name, field in fields.items() if not field.is_required()}
    inner = {name: next(models_in(field.annotation), None) for name, field in fields.items()}

    def part(name: str, item: Any) -> Any:
        below = inner.get(name)
        return item if below is None or not isinstance(item, list) else [with_unlisted_nulls(below, each) for each in item]

    return nulls | {name: part(name, item) for name, item in value.items()}


@pytest.mark.parametrize("tool", TOOLS.values(), ids=lambda tool: tool.name)
def test_null_counts_as_missing_for_fields_that_the_schema_does_not_list(tool: Tool) -> None:
    (schema,) = [listed.input_schema for listed in listed_tools("all") if listed.name == tool.name]
    lists = [name for name, part in schema.get("properties", {}).items() if "items" in part]
    sent = filled({**schema, "required": [*schema.get("required", ()), *lists]}, nulls=False)
    plain, _ = tool.read(sent, strict=True)
    with_nulls, _ = tool.read(with_unlisted_nulls(tool.takes, sent), strict=True)
    assert given(with_nulls) == given(plain)


@pytest.mark.parametrize(
    ("tool", "sent", "meant"),
    [
        ("delete_long_term_memories", {"memory_ids": "m1"}, {"memory_ids": ["m1"]}),
        ("create_long_term_memories", {"memories": "Ada likes tea"}, {"memories": [{"text": "Ada likes tea"}]}),
        ("create_long_term_memories", {"memories": ["Ada likes tea"]}, {"memories": [{"text": "Ada likes tea"}]}),
        ("create_long_term_memories", {"memories": {"text": "Tea", "topics": "food"}}, {"memories": [{"text": "Tea", "topics": ["food"]}]}),
        ("create_long_term_memories", {"memories": '[{"text": "Tea"}]'}, {"memories": [{"text": "Tea"}]}),
        ("edit_long_term_memory", {"memory_id": "m", "topics": "food"}, {"memory_id": "m", "topics": ["food"]}),
        ("archival_memory_insert", {"content": "Tea", "tags": "food"}, {"content": "Tea", "tags": ["food"]}),
        ("save_procedure", {"when_to_use": "Drips", "steps": "Close it"}, {"when_to_use": "Drips", "steps": ["Close it"]}),
        ("search_long_term_memory", {"text": "x", "user_id": "ada"}, {"text": "x", "user_id": {"eq": "ada"}}),
        ("search_long_term_memory", {"text": "x", "topics": ["a", "b"]}, {"text": "x", "topics": {"any": ["a", "b"]}}),
        ("search_long_term_memory", {"text": "x", "topics": {"any": "food"}}, {"text": "x", "topics": {"any": ["food"]}}),
        ("search_long_term_memory", {"text": "x", "topics": '{"all": ["a"]}'}, {"text": "x", "topics": {"all": ["a"]}}),
        ("set_working_memory", {"session_id": "s", "data": '{"a": null}'}, {"session_id": "s", "data": {"a": None}}),
        (
            "set_working_memory",
            {"session_id": "s", "long_term_memory_strategy": "summary"},
            {"session_id": "s", "long_term_memory_strategy": {"strategy": "summary"}},
        ),
    ],
)
def test_single_string_is_accepted_for_a_list_or_object(tool: str, sent: dict[str, Any], meant: dict[str, Any]) -> None:
    read = [given(TOOLS[tool].read(arguments, strict=True)[0]) for arguments in (sent, meant)]
    assert read[0] == read[1]


def test_empty_filter_object_is_refused() -> None:
    with pytest.raises(InvalidArguments):
        TOOLS["search_long_term_memory"].read({"text": "x", "user_id": {}}, strict=True)


async def test_core_tool_set_is_small_and_tool_sets_are_nested() -> None:
    counter = await TokenCounter.open()
    core, agent, everything = (list(chosen_tools(choice)) for choice in CHOICES)
    assert len(core) <= 8
    assert set(core) < set(agent) < set(everything) == set(TOOLS)
    shown = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in listed_tools("core")]
    assert counter.count(json.dumps(shown)) <= 3_000, "all that a model may be told of them"


def test_tool_list_is_byte_identical_in_every_process() -> None:
    program = "from agent_memory.interfaces.mcp.server import listed_tools; print([tool.model_dump_json() for tool in listed_tools('all')])"
    environment = {**os.environ, "PYTHONHASHSEED": "1"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.strip() == str([tool.model_dump_json() for tool in listed_tools("all")])


async def test_tool_list_has_cache_ttl_and_scope(server: Server) -> None:
    async with over_http(f"{server.url}/mcp") as session:
        listed = await session.client.list_tools()
        assert (listed.ttl_ms, listed.cache_scope) == (LIST_TTL_MS, "public")


async def test_call_of_a_tool_outside_the_set_names_the_setting() -> None:
    app = create_app(load_settings(MCP_TOOLS="core"), Recorded().runtime)
    async with serving(app) as url, over_http(f"{url}/mcp") as session:
        assert [tool.name for tool in (await session.client.list_tools()).tools] == list(chosen_tools("core"))
        refused = await session.error("compact_long_term_memories")
        assert refused.startswith("404: there is no tool 'compact_long_term_memories' with MCP_TOOLS=core: use one of ")
        assert (await session.call("get_current_datetime"))["iso_utc"]


async def test_null_arguments_are_accepted_over_http(server: Server) -> None:
    headers = {"accept": "application/json, text/event-stream"}
    memory = {"text": "Ada likes pears", "user_id": "nulls", "id": None, "topics": None}
    calls = {"create_long_term_memories": {"memories": [memory]}, "search_long_term_memory": {"text": "pears", "limit": None}}
    async with httpx.AsyncClient(base_url=server.url, headers=headers, timeout=30) as client:
        for name, arguments in calls.items():
            call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
            answer = (await client.post("/mcp", json=call)).json()
            assert not answer["result"].get("isError"), answer
