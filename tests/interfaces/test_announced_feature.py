"""Test that one registration adds a feature to HTTP, MCP, prompts and the client."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import httpx
import pytest
from ulid import ULID

from agent_memory import runtime as opening
from agent_memory.feature_list import FEATURES, check_names
from agent_memory.foundation.core.feature import Feature
from agent_memory.foundation.core.mcp_tools import Tool
from agent_memory.foundation.core.settings import load_settings
from agent_memory.interfaces.http import app as application
from agent_memory.interfaces.http.routes import assemble_routers
from agent_memory.interfaces.mcp import server as mcp_server
from agent_memory.interfaces.mcp.tools import assemble_tools
from agent_memory_client import MemoryAPIClient, MemoryClientConfig
from agent_memory_client.resources import tool_calls as client_tools
from tests.registrations import parts
from tests.support.api import serving
from tests.support.mcp import over_http
from tests.support.mottos import LATE_MOTTOS, MOTTOS, MottoTools

ROOT = Path(__file__).parents[2]
WITH_MOTTOS = (*FEATURES, MOTTOS, LATE_MOTTOS)


def chosen_tools(choice: str) -> dict[str, Tool]:
    return assemble_tools(WITH_MOTTOS)


@pytest.fixture(scope="module")
async def url(redis_url: str) -> AsyncGenerator[str]:
    """Start a server with the extra feature, and store a motto and a session for Ann."""
    patch = pytest.MonkeyPatch()
    patch.setattr(opening, "FEATURES", WITH_MOTTOS)
    patch.setattr(application, "ROUTERS", assemble_routers(WITH_MOTTOS))
    patch.setattr(mcp_server, "chosen_tools", chosen_tools)
    patch.setattr(mcp_server, "listed_tools", mcp_server.listed_tools.__wrapped__)
    settings = load_settings(KEY_PREFIX=f"t{str(ULID()).lower()}", MODEL_PROVIDER="local", EMBEDDING_PROVIDER="local")
    async with opening.open_runtime(settings, redis_url) as runtime, serving(application.create_app(settings, runtime)) as url:
        async with httpx.AsyncClient(base_url=url) as http:
            (await http.put("/v1/motto", params={"user_id": "ann"}, json={"text": "slow and steady"})).raise_for_status()
            session = {"context": "They met.", "messages": [{"role": "user", "content": "I am late"}]}
            (await http.put("/v1/working-memory/s1", params={"user_id": "ann"}, json=session)).raise_for_status()
        yield url
    patch.undo()


async def prompt(url: str, user: str, **more: Any) -> dict[str, Any]:
    body = {"query": "What?", "session": {"session_id": "s1", "user_id": user}, **more}
    async with httpx.AsyncClient(base_url=url) as http:
        answer = await http.post("/v1/memory/prompt", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def texts(answer: dict[str, Any]) -> list[str]:
    return [message["content"]["text"] for message in answer["messages"]]


async def test_registered_feature_answers_over_http(url: str) -> None:
    async with httpx.AsyncClient(base_url=url) as http:
        assert (await http.get("/v1/motto", params={"user_id": "ann"})).json() == {"text": "slow and steady"}


async def test_registered_feature_answers_over_mcp(url: str) -> None:
    async with over_http(f"{url}/mcp") as session:
        listed = {tool.name: tool for tool in (await session.client.list_tools()).tools}
        assert listed["read_motto"].description == "Tells what a user goes by."
        assert await session.call("read_motto", user_id="ann") == {"text": "slow and steady"}


async def test_prompt_shows_fixed_section_first_and_recalled_section_after_messages(url: str) -> None:
    first, summary, said, recalled, query = texts(await prompt(url, "ann"))
    assert (first, recalled) == ("always: slow and steady", "recalled: slow and steady")
    assert "They met." in summary
    assert (said, query) == ("I am late", "What?")


async def test_mcp_prompt_shows_feature_sections_with_and_without_session(url: str) -> None:
    expected = ["always: slow and steady", "recalled: slow and steady"]
    async with over_http(f"{url}/mcp") as session:
        for asked in ({}, {"session_id": "s1"}):
            answer = await session.call("memory_prompt", query="What?", user_id="ann", **asked)
            assert [text for text in texts(answer) if text.endswith("slow and steady")] == expected


async def test_prompt_is_unchanged_for_a_user_without_feature_data(url: str) -> None:
    assert texts(await prompt(url, "ben")) == ["What?"]


async def test_provider_format_puts_feature_section_first_in_system_text(url: str) -> None:
    system, *_ = (await prompt(url, "ann", format="openai"))["messages"]
    parts = [system["content"].index(text) for text in ("always: slow", "They met.", "recalled: slow")]
    assert parts[0] == 0
    assert parts == sorted(parts)


async def test_feature_sections_are_cut_to_their_token_shares(url: str) -> None:
    async with httpx.AsyncClient(base_url=url) as http:
        await http.put("/v1/motto", params={"user_id": "cleo"}, json={"text": " ".join(["on"] * 90)})
    first, recalled, _ = texts(await prompt(url, "cleo", max_tokens=100))
    assert 5 <= first.count("on") <= 10, "a tenth"
    assert recalled.count("on") <= 80, "and what the summary and memories leave"


async def test_feature_tool_is_a_client_tool(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_tools, "MODEL_TOOLS", (MottoTools,))
    async with MemoryAPIClient(MemoryClientConfig(base_url=url)) as client:
        assert client.tools.schemas("anthropic").names()[-1] == "tell_motto"
        assert "tell_motto" not in client.get_all_memory_tool_schemas().names()
        call = {"name": "tell_motto", "arguments": {}}
        result = await client.resolve_tool_call(call, "s1", user_id="ann", agent_id="coach")
        assert result["formatted_response"].startswith("tell_motto: slow and steady"), result
        assert result["result"] == {"summary": "tell_motto: slow and steady", "agent": "coach"}


EDITED = {
    "client/agent_memory_client/resources/registry.py",
    "client/agent_memory_client/models/features/prompt_options.py",
}


@pytest.mark.parametrize("feature", ["archive", "blocks", "pinned", "profile", "timeline", "procedures"])
def test_at_most_two_files_import_an_extension(feature: str) -> None:
    """Imports by the extension itself, dependent extensions and compatible APIs do not count."""
    rooms = "|".join(["compat", *(one.name for one in FEATURES)])
    level = "(features|extensions|interfaces)"
    own = re.compile(rf"^(agent_memory/{level}|worker/agent_memory_worker)/({rooms})[/.]|/features/({rooms})\.py$")
    names = re.compile(rf"\b(agent_memory\.extensions|agent_memory_worker|resources\.features|models\.features)\.{feature}\b")
    folders = ("agent_memory", "worker/agent_memory_worker", "client/agent_memory_client/resources", "client/agent_memory_client/models")
    files = {str(file.relative_to(ROOT)): file for folder in folders for file in (ROOT / folder).rglob("*.py")}
    know = {name for name, file in files.items() if not own.search(name) and names.search(file.read_text("utf-8"))}
    assert know <= EDITED


def test_at_most_three_other_files_know_the_oauth_server() -> None:
    """The count covers its name, protocol, Redis keys and console texts."""
    names = re.compile(r"(?i)oauth_?server|oauth client|connection_renew|authorization server\b|connect_title")
    folders = ("agent_memory", "worker/agent_memory_worker", "client/agent_memory_client", "client-ts/src")
    files = {str(file.relative_to(ROOT)): file for folder in folders for file in (ROOT / folder).rglob("*.*")}
    files = {name: file for name, file in files.items() if file.suffix in (".py", ".lua", ".html", ".json", ".ts", ".toml")}
    files["pyproject.toml"] = ROOT / "pyproject.toml"
    know = {name for name, file in files.items() if "/oauth_server/" not in name and names.search(file.read_text("utf-8"))}
    assert know == {"agent_memory/foundation/core/settings/auth.py", "agent_memory/interfaces/http/app.py", "pyproject.toml"}


def test_at_most_three_files_know_reembedding() -> None:
    """Its folder, its worker module and the client's models do not count."""
    own = re.compile(r"^agent_memory/features/reembed/|^worker/agent_memory_worker/reembed\.py$")
    names = re.compile(r"re-?embed|\bre:[a-z]+\b|embedding_choice", re.IGNORECASE)
    files = {str(file.relative_to(ROOT)): file for folder in ("agent_memory", "worker") for file in (ROOT / folder).rglob("*.*")}
    sources = {name: file for name, file in files.items() if file.suffix in {".py", ".lua", ".json"} and not own.search(name)}
    assert {name for name, file in sources.items() if names.search(file.read_text("utf-8"))} == {
        "agent_memory/feature_list.py",
        "agent_memory/features/memories/lua/parts/documents.lua",
        "agent_memory/runtime.py",
    }


def test_other_tests_never_import_a_registered_feature() -> None:
    """All other tests must pass after a feature's folder, tests and registration are deleted."""
    for folder in (Path(file).parent for file in parts("registration.py")):
        names = re.compile(rf"\b(agent_memory|agent_memory_worker|tests\.features)\.{folder.name}\b")
        others = [file for file in (ROOT / "tests").rglob("*.py") if folder not in file.parents]
        assert [str(file) for file in others if names.search(file.read_text("utf-8"))] == []


async def test_duplicate_tool_name_raises_value_error() -> None:
    with pytest.raises(ValueError, match="two tools 'read_motto'"):
        assemble_tools([MOTTOS, MOTTOS])


@pytest.mark.parametrize(
    ("second", "message"),
    [
        (Feature("blocks"), "two features are named blocks"),
        (Feature("mine", jobs={next(name for one in FEATURES for name in one.jobs): "my:job"}), "two jobs are named"),
        (Feature("mine", keys=FEATURES[0].keys[:1]), f"two Redis keys are named {FEATURES[0].keys[0].name}"),
    ],
)
def test_feature_with_a_taken_name_stops_the_start(second: Feature, message: str) -> None:
    check_names(WITH_MOTTOS)
    with pytest.raises(ValueError, match=re.escape(message)):
        check_names((*FEATURES, second))
