"""Compare the tools' names, parameters, defaults and required fields with the contract."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agent_memory.interfaces.mcp.server import listed_tools

WANTED: dict[str, Any] = json.loads((Path(__file__).parents[2] / "compat" / "contract" / "contract.json").read_text())["mcp_tools"]
FOUND = {tool.name: tool for tool in listed_tools("all")}
PARAMETERS = [(tool, name) for tool, about in WANTED.items() for name in about["params"]]

EXCEPTIONS = {
    ("set_working_memory", "ttl_seconds"): "the same as in REST, which keeps a session (defect 35); one hour lost conversations",
}
MORE = {
    "set_working_memory": {"model_name", "context_window_max"},
    "get_working_memory": {"model_name", "context_window_max"},
    "search_long_term_memory": {"min_trust", "min_relevance"},
    "memory_prompt": {"min_trust", "min_relevance"},
}
"""Parameters of REST's PUT and GET that the archived server's tools lacked (defect 35), and those of trust and relevance."""
ARCHIVE = {"archival_memory_search", "conversation_search", "conversation_search_date"}
OURS = {
    *("forget_memory", "core_memory_append", "core_memory_replace", "archival_memory_insert", *ARCHIVE),
    *("memory_insert", "memory_replace", "memory_rethink", "memory_finish_edits"),
    *("get_profile", "get_timeline", "save_procedure", "search_procedures"),
}
"""Tools that the archived server lacks."""


def test_tools_match_the_contract_plus_known_additions() -> None:
    assert [name for name in FOUND if name not in OURS] == list(WANTED)
    assert FOUND.keys() - WANTED.keys() == OURS


@pytest.mark.parametrize("tool", WANTED)
def test_additional_parameters_are_known_and_optional(tool: str) -> None:
    schema = FOUND[tool].input_schema
    assert set(schema.get("required", [])) == {name for name, about in WANTED[tool]["params"].items() if about["required"]}
    more = set(schema["properties"]) - set(WANTED[tool]["params"])
    assert more >= MORE.get(tool, set())
    assert all(name not in schema.get("required", []) for name in more)


@pytest.mark.parametrize(("tool", "name"), PARAMETERS)
def test_parameter_matches_the_contract(tool: str, name: str) -> None:
    wanted, found = WANTED[tool]["params"][name], FOUND[tool].input_schema["properties"][name]
    types = {kind["type"] for kind in found.get("anyOf", [found])}
    assert _type(wanted["type"]) in types
    if not wanted["required"]:
        same = found.get("default") == wanted["default"]
        assert same != ((tool, name) in EXCEPTIONS)


def _type(wanted: str) -> str:
    """Map a contract type to its JSON type."""
    if wanted.startswith("array<"):
        return "array"
    if wanted in ("SearchModeEnum", "MemoryTypeEnum"):
        return "string"
    return wanted if wanted in ("string", "integer", "number", "boolean") else "object"


def test_read_only_tools_are_annotated() -> None:
    reading = {name for name, tool in FOUND.items() if tool.annotations is not None and tool.annotations.read_only_hint}
    archived = {"get_current_datetime", "search_long_term_memory", "memory_prompt", "get_working_memory", "get_long_term_memory"}
    assert reading == archived | ARCHIVE | {"get_profile", "get_timeline", "search_procedures", "memory_finish_edits"}


def test_all_tool_descriptions_fit_in_8000_tokens() -> None:
    said = sum(len(json.dumps(tool.input_schema)) + len(tool.description or "") for tool in listed_tools("all"))
    assert said < 33_500, "about 8,000 tokens"
