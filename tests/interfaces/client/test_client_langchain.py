"""Test the LangChain tools' schemas, and calls through both clients."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from agent_memory_client import MemoryAPIClient, MemoryClientConfig, SyncMemoryAPIClient

pytest.importorskip("langchain_core", reason="the LangChain tools are an extra: agent-memory-api-client[langchain]")

from langchain_core.utils.function_calling import convert_to_openai_tool

from agent_memory_client.integrations import get_memory_tools, get_memory_tools_langchain

CONFIG = MemoryClientConfig(base_url="http://memory", default_namespace="app", max_retries=0)
HIT = {"id": "m1", "text": "Ada likes tea.", "dist": 0.25, "memory_type": "semantic", "user_id": "ada"}


class Server:
    """A fake server that returns one hit for each search and records requests."""

    def __init__(self) -> None:
        self.requests: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        if request.url.path.endswith("/search"):
            return httpx.Response(200, json={"memories": [HIT], "total": 1})
        return httpx.Response(503, json={"detail": "Redis is away"})


@pytest.fixture
def server() -> Server:
    return Server()


def tools_of(server: Server, kind: str, **options: Any) -> dict[str, Any]:
    transport = httpx.MockTransport(server)
    client = MemoryAPIClient(CONFIG, transport=transport) if kind == "async" else SyncMemoryAPIClient(CONFIG, transport=transport)
    return {tool.name: tool for tool in get_memory_tools(client, "talk", user_id="ada", **options)}


async def call(tool: Any, kind: str, given: Any) -> Any:
    return await tool.ainvoke(given) if kind == "async" else tool.invoke(given)


def test_langchain_tools_have_the_schemas_of_the_client_tools(server: Server) -> None:
    tools = tools_of(server, "async")
    assert list(tools) == [*MemoryAPIClient.get_all_memory_tool_schemas().names(), "forget_memory"]
    for wanted in MemoryAPIClient.get_all_memory_tool_schemas().to_list():
        told = convert_to_openai_tool(tools[wanted["function"]["name"]])["function"]
        assert {key: told[key] for key in ("name", "description", "parameters")} == wanted["function"]


@pytest.mark.parametrize("kind", ["async", "sync"])
async def test_tool_returns_text_and_stays_within_its_user(server: Server, kind: str) -> None:
    tools = tools_of(server, kind)
    text = await call(tools["search_memory"], kind, {"query": "What does she like?", "topics": ["food"], "max_results": 3})
    assert "Found 1 relevant memories" in text
    assert "Ada likes tea." in text
    sent = json.loads(server.requests[0].content)
    assert (sent["user_id"], sent["namespace"], sent["topics"], sent["limit"]) == ({"eq": "ada"}, {"eq": "app"}, {"any": ["food"]}, 3)
    assert "iso_utc" in await call(tools["get_current_datetime"], kind, {})


@pytest.mark.parametrize("kind", ["async", "sync"])
async def test_failed_tool_call_returns_an_error_message(server: Server, kind: str) -> None:
    tools = tools_of(server, kind)
    asked = {"type": "tool_call", "id": "c1", "name": "get_long_term_memory", "args": {"memory_id": "m1"}}
    message = await call(tools["get_long_term_memory"], kind, asked)
    assert (message.status, message.tool_call_id) == ("error", "c1")
    assert "Redis is away" in message.content
    assert "query" in (await call(tools["search_memory"], kind, {"query": None}))


async def test_tools_of_a_blocking_client_can_be_awaited(server: Server) -> None:
    assert "Ada likes tea." in await tools_of(server, "sync")["search_memory"].ainvoke({"query": "tea"})


def test_tools_are_chosen_by_name(server: Server) -> None:
    assert list(tools_of(server, "async", tools=["get_current_datetime", "search_memory"])) == ["get_current_datetime", "search_memory"]
    assert get_memory_tools_langchain is get_memory_tools
    with pytest.raises(ValueError, match="there is no tool make_coffee"):
        tools_of(server, "async", tools=["make_coffee"])
