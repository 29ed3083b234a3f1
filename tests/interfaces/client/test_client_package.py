"""Test the package's public names, version and declared dependencies."""

from __future__ import annotations

import ast
import importlib
import sys
import tomllib
from pathlib import Path

import pytest

import agent_memory_client

PACKAGE = Path(agent_memory_client.__file__).parent
PROJECT = Path(__file__).parents[3] / "client" / "pyproject.toml"

IMPORTED_BY_PROGRAMS = {
    "agent_memory_client": [
        "CreateSummaryViewRequest",
        "ForgetPolicy",
        "ForgetResponse",
        "MemoryAPIClient",
        "MemoryClientConfig",
        "MemoryClientError",
        "MemoryNotFoundError",
        "MemoryServerError",
        "MemoryValidationError",
        "ModelNameLiteral",
        "SummaryView",
        "SummaryViewPartitionResult",
        "Task",
        "ToolSchema",
        "ToolSchemaCollection",
        "__version__",
        "create_memory_client",
        "prompt_messages",
    ],
    "agent_memory_client.client": ["MemoryAPIClient", "MemoryClientConfig", "ToolCallResolutionResult", "create_memory_client"],
    "agent_memory_client.tool_schema": ["ToolSchema", "ToolSchemaCollection"],
    "agent_memory_client.exceptions": ["MemoryClientError", "MemoryNotFoundError", "MemoryServerError", "MemoryValidationError"],
    "agent_memory_client.filters": [
        "CreatedAt",
        "Entities",
        "EventDate",
        "LastAccessed",
        "MemoryType",
        "Namespace",
        "SessionId",
        "Topics",
        "UserId",
    ],
    "agent_memory_client.models": [
        "AckResponse",
        "ClientMemoryRecord",
        "CreateSummaryViewRequest",
        "ExtractedMemoryRecord",
        "ForgetPolicy",
        "ForgetResponse",
        "HealthCheckResponse",
        "JSONTypes",
        "MemoryMessage",
        "MemoryPromptResponse",
        "MemoryRecord",
        "MemoryRecordResult",
        "MemoryRecordResults",
        "MemoryStrategyConfig",
        "MemoryTypeEnum",
        "ModelNameLiteral",
        "RecencyConfig",
        "SessionListResponse",
        "SummaryView",
        "SummaryViewPartitionResult",
        "SummaryViewSource",
        "Task",
        "TaskStatus",
        "WorkingMemory",
        "WorkingMemoryResponse",
    ],
}


@pytest.mark.parametrize(("module", "names"), IMPORTED_BY_PROGRAMS.items())
def test_public_names_are_importable(module: str, names: list[str]) -> None:
    found = importlib.import_module(module)
    assert [name for name in names if not hasattr(found, name)] == []
    assert set(names) <= set(getattr(found, "__all__", names))


def test_only_declared_dependencies_are_imported() -> None:
    allowed = {"agent_memory_client", "httpx", "pydantic", "pydantic_core", "ulid"} | set(sys.stdlib_module_names)
    for path in set(PACKAGE.rglob("*.py")) - set((PACKAGE / "integrations").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            names = (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else [node.module or ""]
                if isinstance(node, ast.ImportFrom)
                else []
            )
            assert {name.partition(".")[0] for name in names} <= allowed, path


def test_project_file_has_package_name_and_version_path() -> None:
    project = tomllib.loads(PROJECT.read_text())
    assert project["project"]["name"] == "agent-memory-api-client"
    assert project["tool"]["hatch"]["version"]["path"] == "agent_memory_client/_version.py"
    assert agent_memory_client.__version__.count(".") == 2
    assert (PACKAGE / "py.typed").exists()
