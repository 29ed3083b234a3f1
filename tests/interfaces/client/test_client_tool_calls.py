"""Test that tool calls from every provider work, never raise, and stay in scope."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from agent_memory_client import MemoryAPIClient, MemoryClientConfig
from agent_memory_client.errors import MemoryValidationError

ARGUMENTS = {"query": "tea"}
TEXT = json.dumps(ARGUMENTS)


@pytest.mark.parametrize(
    ("call", "call_id", "provider"),
    [
        ({"id": "c1", "type": "function", "function": {"name": "search_memory", "arguments": TEXT}}, "c1", "openai"),
        ({"id": "c1", "function": {"name": "search_memory", "arguments": ARGUMENTS}}, "c1", "openai"),
        ({"name": "search_memory", "arguments": TEXT}, None, "openai"),
        ({"type": "function_call", "call_id": "c1", "name": "search_memory", "arguments": TEXT}, "c1", "openai"),
        ({"type": "tool_use", "id": "t1", "name": "search_memory", "input": ARGUMENTS}, "t1", "anthropic"),
        ({"name": "search_memory", "args": ARGUMENTS, "id": "l1", "type": "tool_call"}, "l1", "generic"),
        ({"name": "search_memory", "arguments": ARGUMENTS}, None, "openai"),
    ],
)
def test_tool_calls_of_every_provider_are_parsed(call: dict[str, Any], call_id: str | None, provider: str) -> None:
    assert MemoryAPIClient.parse_tool_call(call) == {"id": call_id, "name": "search_memory", "arguments": ARGUMENTS, "provider": provider}


@pytest.mark.parametrize("nothing", [None, "", " ", "{}", {}])
def test_missing_arguments_are_parsed_as_empty(nothing: Any) -> None:
    assert MemoryAPIClient.parse_openai_function_call({"name": "get_current_datetime", "arguments": nothing})["arguments"] == {}
    assert MemoryAPIClient.parse_anthropic_tool_use({"name": "get_current_datetime", "input": nothing})["arguments"] == {}


BAD_CALLS: list[Any] = [
    {"name": "search_memory", "arguments": '{"query": "te'},
    {"name": "search_memory", "arguments": "[1]"},
    {"name": "search_memory", "input": ["query"]},
    {"type": "function", "function": None},
    {"type": "function", "function": {"arguments": TEXT}},
    {"arguments": TEXT},
    {},
    None,
    "search_memory",
]


@pytest.mark.parametrize("call", BAD_CALLS)
async def test_malformed_tool_call_returns_an_error(call: Any) -> None:
    with pytest.raises(MemoryValidationError):
        MemoryAPIClient.parse_tool_call(call)
    async with serving() as client:
        result = await client.resolve_tool_call(call, "s")
    assert (result["success"], result["result"]) == (False, None)
    assert result["error"]
    assert result["function_name"] in ("search_memory", "unknown")


class Memories:
    """A fake server that serves a few memories by id and records requests."""

    def __init__(self) -> None:
        self.requests: list[httpx.Request] = []
        self.stored = {"mine": "ada", "hers": "eve", "nobodys": None}

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        path = request.url.path.removeprefix("/v1/long-term-memory").strip("/")
        if path == "search":
            return httpx.Response(200, json={"memories": [], "total": 0})
        if request.method == "GET" and path not in self.stored:
            return httpx.Response(404, json={"detail": f"Memory {path} not found"})
        if request.method in ("GET", "PATCH"):
            return httpx.Response(200, json={"id": path, "text": "x", "user_id": self.stored[path], "namespace": "app"})
        return httpx.Response(200, json={"status": "ok"})


def serving(server: Callable[[httpx.Request], httpx.Response] | None = None) -> MemoryAPIClient:
    config = MemoryClientConfig(base_url="http://memory", default_namespace="app", max_retries=0)
    return MemoryAPIClient(config, transport=httpx.MockTransport(server or Memories()))


async def test_search_tool_stays_within_the_conversation_user() -> None:
    server = Memories()
    async with serving(server) as client:
        assert (await client.resolve_function_call("search_memory", {"query": "tea"}, "s", user_id="ada"))["success"]
        assert (await client.resolve_function_call("search_memory", {"query": "tea", "user_id": "ada"}, "s", "own", "ada"))["success"]
        other = await client.resolve_function_call("search_memory", {"query": "tea", "user_id": "eve"}, "s", user_id="ada")
        assert (await client.resolve_function_call("search_memory", {"query": "tea", "user_id": "eve"}, "s"))["success"]
    sent = [json.loads(request.content) for request in server.requests]
    assert [(body.get("user_id"), body["namespace"]) for body in sent] == [
        ({"eq": "ada"}, {"eq": "app"}),
        ({"eq": "ada"}, {"eq": "own"}),
        ({"eq": "eve"}, {"eq": "app"}),
    ]
    assert not other["success"]
    assert "user_id" in str(other["error"])


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("get_long_term_memory", {"memory_id": "hers"}),
        ("edit_long_term_memory", {"memory_id": "hers", "text": "y"}),
        ("delete_long_term_memories", {"memory_ids": ["hers"]}),
        ("edit_long_term_memory", {"memory_id": "mine", "user_id": "eve"}),
        ("edit_long_term_memory", {"memory_id": "mine", "namespace": "other"}),
        ("eagerly_create_long_term_memory", {"memories": [{"text": "x", "memory_type": "semantic", "user_id": "eve"}]}),
    ],
)
async def test_memories_of_other_users_look_missing_and_cannot_be_changed(tool: str, given: dict[str, Any]) -> None:
    server = Memories()
    async with serving(server) as client:
        result = await client.resolve_function_call(tool, given, "s", user_id="ada")
    assert not result["success"]
    assert {request.method for request in server.requests} <= {"GET"}, "nothing was changed"
    unknown = {"memory_id": "none", "memory_ids": ["none"], "text": "y"}
    if "hers" in json.dumps(given):
        async with serving() as client:
            missing = await client.resolve_function_call(tool, unknown, "s", user_id="ada")
        assert str(missing["error"]).replace("none", "hers") == result["error"], "no difference that tells what exists"


async def test_own_and_ownerless_memories_can_be_edited() -> None:
    async with serving() as client:
        for memory_id in ("mine", "nobodys"):
            for tool in ("get_long_term_memory", "edit_long_term_memory"):
                result = await client.resolve_function_call(tool, {"memory_id": memory_id, "text": "y"}, "s", user_id="ada")
                assert result["success"]
                assert result["result"]["memory"].id == memory_id  # pyright: ignore[reportOptionalSubscript]


async def test_delete_tool_deletes_only_own_memories() -> None:
    server = Memories()
    async with serving(server) as client:
        given = {"memory_ids": ["mine", "hers", "none", "mine"]}
        assert (await client.resolve_function_call("delete_long_term_memories", given, "s", user_id="ada"))["success"]
    assert server.requests[-1].url.params.get_list("memory_ids") == ["mine", "mine"]


async def test_a_model_cannot_choose_the_id_of_a_new_memory() -> None:
    server = Memories()
    memories = {"memories": {"text": "x", "memory_type": "semantic", "id": "hers", "topics": None}}
    async with serving(server) as client:
        result = await client.resolve_function_call("eagerly_create_long_term_memory", memories, "s", user_id="ada")
    sent = json.loads(server.requests[0].content)["memories"]
    assert [(record["user_id"], record["namespace"]) for record in sent] == [("ada", "app")]
    assert [record["id"] for record in sent] == result["result"]["ids"] != ["hers"]  # pyright: ignore[reportOptionalSubscript]


@pytest.mark.parametrize(
    ("tool", "given", "named"),
    [
        ("search_memory", {}, "query"),
        ("search_memory", {"query": ""}, "query"),
        ("search_memory", {"query": "x", "min_relevance": 3}, "min_relevance"),
        ("search_memory", {"query": "x", "search_mode": "magic"}, "search_mode"),
        ("search_memory", "{", "JSON"),
        ("lazily_create_long_term_memory", {}, "text"),
        ("lazily_create_long_term_memory", {"text": "x", "memory_type": "odd"}, "memory_type"),
        ("lazily_create_long_term_memory", {"text": "x", "topics": ["a,b"]}, "commas"),
        ("update_working_memory_data", {"data": {}}, "data"),
        ("update_working_memory_data", {"data": {"a": 1}, "merge_strategy": "mix"}, "merge_strategy"),
        ("get_long_term_memory", {"memory_id": None}, "memory_id"),
        ("eagerly_create_long_term_memory", {"memories": []}, "memories"),
        ("eagerly_create_long_term_memory", {"memories": [{"text": "x", "event_date": "soon"}]}, "event_date"),
        ("edit_long_term_memory", {"memory_id": "mine"}, "at least one field"),
        ("delete_long_term_memories", {"memory_ids": "mine"}, "memory_ids"),
        ("make_coffee", {}, "there is no tool 'make_coffee'"),
        (None, {}, "there is no tool"),
    ],
)
async def test_invalid_arguments_return_an_error_without_a_request(tool: str, given: Any, named: str) -> None:
    server = Memories()
    async with serving(server) as client:
        result = await client.resolve_function_call(tool, given, "s")
    assert (result["success"], result["result"], server.requests) == (False, None, [])
    assert named in str(result["error"])
    assert named in result["formatted_response"]


async def test_unreachable_server_gives_an_error_result_in_every_tool() -> None:
    def away(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused")

    calls = {
        "search_memory": ARGUMENTS,
        "get_working_memory": {},
        "get_or_create_working_memory": {},
        "lazily_create_long_term_memory": {"text": "x", "memory_type": "semantic"},
        "update_working_memory_data": {"data": {"a": 1}},
        "get_long_term_memory": {"memory_id": "m"},
        "eagerly_create_long_term_memory": {"memories": [{"text": "x", "memory_type": "semantic"}]},
        "edit_long_term_memory": {"memory_id": "m", "text": "x"},
        "delete_long_term_memories": {"memory_ids": ["m"]},
    }
    async with serving(away) as client:
        results = await client.resolve_function_calls([{"name": name, "arguments": given} for name, given in calls.items()], "s")
    assert [result["function_name"] for result in results] == list(calls)
    assert not any(result["success"] for result in results)
    assert all("cannot be reached" in str(result["error"]) for result in results)


async def test_unexpected_exception_is_logged_and_returned_as_error(caplog: pytest.LogCaptureFixture) -> None:
    def fault(request: httpx.Request) -> httpx.Response:
        raise RuntimeError("bug")

    async with serving(fault) as client:
        result = await client.resolve_function_call("search_memory", ARGUMENTS, "s")
    assert (result["success"], result["error"]) == (False, "unexpected RuntimeError: bug")
    assert [(entry.message, vars(entry)["tool"]) for entry in caplog.records if entry.exc_info] == [("tool failed", "search_memory")]


async def test_deprecated_tool_name_works_with_a_warning() -> None:
    async with serving() as client:
        with pytest.warns(DeprecationWarning, match="eagerly_create_long_term_memory"):
            result = await client.resolve_function_call("create_long_term_memory", {"memories": [{"text": "x"}]}, "s")
        assert (result["success"], result["function_name"]) == (True, "create_long_term_memory")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert not (await client.resolve_function_call("create_long_term_memory", {"memories": [{"text": "x"}]}, "s"))["success"]


async def test_datetime_tool_works_without_the_server() -> None:
    def away(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused")

    async with serving(away) as client:
        result = await client.resolve_function_call("get_current_datetime", "", "s")
    assert set(result["result"] or {}) == {"iso_utc", "unix_ts"}
    assert (result["result"] or {})["iso_utc"].endswith("Z")
    assert (result["result"] or {})["iso_utc"] in result["formatted_response"]
