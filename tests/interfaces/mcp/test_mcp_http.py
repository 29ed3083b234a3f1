"""Test MCP over HTTP with hostile arguments, requests from other sites, and engine failures."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import httpx
import pytest
from mcp import MCPError
from ulid import ULID

from agent_memory.foundation.core.errors import RedisUnavailable
from agent_memory.foundation.core.settings import load_settings
from agent_memory.interfaces.http.app import create_app, create_mcp_app
from tests.interfaces.mcp.conftest import Server
from tests.support.api import Recorded, serving
from tests.support.mcp import over_http, over_sse
from tests.support.waiting import wait_until

HEADERS = {"accept": "application/json, text/event-stream", "content-type": "application/json"}


@pytest.mark.parametrize("transport", ["streamable-http", "sse"])
async def test_concurrent_sessions_stay_in_the_namespaces_of_their_urls(transport: str, server: Server) -> None:
    names = [f"{transport}-{ULID()}" for _ in range(3)]

    async def one(name: str) -> None:
        connect = over_http(f"{server.url}/{name}/mcp") if transport == "streamable-http" else over_sse(f"{server.sse_url}/{name}/sse")
        async with connect as session:
            for turn in range(4):
                await session.call("create_long_term_memories", memories=[{"text": f"Fact {turn} of {name}."}])
                await session.call("set_working_memory", session_id="same", messages=[{"role": "user", "content": f"{name} {turn}"}])
                read = await session.call("get_working_memory", session_id="same")
                assert (read["namespace"], read["messages"][0]["content"]) == (name, f"{name} {turn}")
                found = await session.call("search_long_term_memory", text="fact", limit=100)
                assert {memory["namespace"] for memory in found["memories"]} == {name}
                assert sum(memory["text"].startswith("Fact ") for memory in found["memories"]) == turn + 1
                prompt = await session.call("memory_prompt", query="which fact?", session_id={"eq": "same"})
                assert {memory["namespace"] for memory in prompt["long_term_memories"]} <= {name}
                assert f"{name} {turn}" in str(prompt["messages"])
            elsewhere = await session.call("search_long_term_memory", text=None, namespace={"eq": names[0]}, limit=100)
            assert {memory["namespace"] for memory in elsewhere["memories"]} == {names[0]}, "what is said beats the URL"

    await asyncio.gather(*map(one, names))


async def test_environment_defaults_fill_missing_scope(server: Server, redis_url: str) -> None:
    recorded = Recorded()
    settings = load_settings(DEFAULT_MCP_NAMESPACE="work", DEFAULT_MCP_USER_ID="ada")
    async with serving(create_app(settings, recorded.runtime)) as url, over_http(f"{url}/mcp") as session:
        await session.call("create_long_term_memories", memories=[{"text": "x"}, {"text": "y", "namespace": "home", "user_id": "bob"}])
        records = recorded.last[1][0].memories
        assert [(record.namespace, record.user_id) for record in records] == [("work", "ada"), ("home", "bob")]
        await session.call("search_long_term_memory", text="x", user_id={"ne": "bob"})
        request = recorded.last[1][0]
        assert (request.namespace.eq, request.user_id.eq, request.user_id.ne) == ("work", None, "bob")
        await session.call("memory_prompt", query="x", session_id="s")
        request = recorded.last[1][0]
        assert (request.session.namespace, request.session.user_id, request.long_term_search.namespace.eq) == ("work", "ada", "work")
        await session.call("set_working_memory", session_id="s")
        assert (recorded.last[2]["namespace"], recorded.last[2]["user_id"]) == ("work", "ada")


HOSTILE: list[tuple[str, dict[str, Any]]] = [
    ("search_long_term_memory", {"text": "x", "limit": -1}),
    ("search_long_term_memory", {"text": "x", "limit": 10**30}),
    ("search_long_term_memory", {"text": "x", "offset": "many"}),
    ("search_long_term_memory", {"text": ["x"]}),
    ("search_long_term_memory", {"text": "x", "namespace": {"eq": "a", "field": "user_id"}}),
    ("search_long_term_memory", {"text": "x", "namespace": {"eq": ""}}),
    ("search_long_term_memory", {"text": "x", "namespace": {"nonsense": "a"}}),
    ("search_long_term_memory", {"text": "x", "created_at": "[[[[[[["}),
    ("search_long_term_memory", {"text": "x", "created_at": {"between": [1]}}),
    ("search_long_term_memory", {"text": "x", "memory_type": "no such type"}),
    ("search_long_term_memory", {"text": "x", "distance_threshold": -1}),
    ("search_long_term_memory", {"text": "x", "recency_half_life_created_days": 0}),
    ("memory_prompt", {"query": None}),
    ("memory_prompt", {"query": "x", "session_id": {"eq": "a/b"}}),
    ("memory_prompt", {"query": "x", "session_id": {"ne": "a"}}),
    ("memory_prompt", {"query": "x", "context_window_max": -5, "session_id": "s"}),
    ("create_long_term_memories", {"memories": [{"text": "  "}]}),
    ("create_long_term_memories", {"memories": [{"text": "x", "topics": ["a,b"]}]}),
    ("create_long_term_memories", {"memories": [{}] * 40_000}),
    ("create_long_term_memories", {"memories": [{"text": "x", "topics": [1] * 60_000}]}),
    ("create_long_term_memories", {"memories": ["[" + "1," * 60_000 + "1]"] * 2}),
    ("create_long_term_memories", {"memories": "[" + "{}," * 12_000 + "{}]"}),
    ("create_long_term_memories", {"memories": "[" * 5_000}),
    ("create_long_term_memories", {"memories": {"user_id": "x"}}),
    ("create_long_term_memories", {"memories": [{"text": "x" * 70_000}]}),
    ("set_working_memory", {"session_id": ""}),
    ("set_working_memory", {"session_id": "a/b"}),
    ("set_working_memory", {"session_id": "s", "messages": [{"role": "user"}]}),
    ("set_working_memory", {"session_id": "s", "messages": [{"role": "user", "content": "x", "created_at": "2099-01-01T00:00:00Z"}]}),
    ("set_working_memory", {"session_id": "s", "ttl_seconds": 10**30}),
    ("set_working_memory", {"session_id": "s", "long_term_memory_strategy": {"strategy": "guess"}}),
    ("get_working_memory", {"session_id": "s", "recent_messages_limit": "all"}),
    ("get_long_term_memory", {"memory_id": " "}),
    ("get_long_term_memory", {"memory_id": {"eq": "x"}}),
    ("edit_long_term_memory", {"memory_id": "x", "event_date": "yesterday"}),
    ("delete_long_term_memories", {"memory_ids": {"id": "x"}}),
    ("delete_long_term_memories", {"memory_ids": [None]}),
    ("compact_long_term_memories", {"namespace": "\x01"}),
    ("no_such_tool", {}),
]


async def test_hostile_arguments_give_errors_that_name_the_field(server: Server) -> None:
    async with over_http(f"{server.url}/mcp") as session:
        for tool, arguments in HOSTILE:
            said = await session.error(tool, **arguments)
            assert said[:4] in ("400:", "404:", "422:"), (tool, said)
            assert len(said) < 10_000
            field = next((name for name in arguments if name in said), None)
            assert field or tool in said, (tool, said)
        assert (await session.call("get_current_datetime"))["unix_ts"] > 0


async def test_values_outside_json_and_too_large_bodies_are_refused(server: Server) -> None:
    def body(arguments: str) -> bytes:
        call = '{"name":"search_long_term_memory","arguments":' + arguments + "}"
        return f'{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{call}}}'.encode()

    for arguments in (
        r'{"text": "x", "user_id": "\ud800"}',
        '{"text": "x", "limit": NaN}',
        '{"text": "x", "distance_threshold": Infinity}',
    ):
        answer = await server.rest.post("/mcp", content=body(arguments), headers=HEADERS)
        assert answer.status_code in (200, 400), answer.text
        said = answer.json()
        assert "error" in said or said["result"]["isError"], said
    for broken in (b"", b"{", b"[" * 90_000, b"[1, 2]", b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}', b"\xff\xfe"):
        answer = await server.rest.post("/mcp", content=broken, headers=HEADERS)
        assert answer.status_code == 200 or 400 <= answer.status_code < 500, (broken[:60], answer.status_code)
        assert "result" not in answer.json()
    assert (await server.rest.post("/mcp", content=b" " * 9_000_000, headers=HEADERS)).status_code == 413


async def test_wrong_methods_paths_and_foreign_hosts_are_refused(server: Server) -> None:
    get = await server.rest.get("/mcp", headers={"accept": "text/event-stream"})
    assert (get.status_code, get.headers["allow"]) == (405, "POST")
    for path in ("/a%2Fb/mcp", "/%00/mcp", "/%ff/mcp", "/a/b/mcp", "/sse", f"/{'x' * 600}/mcp"):
        answer = await server.rest.post(path, json={}, headers=HEADERS)
        assert answer.status_code in (404, 405, 422), path
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    assert (await server.rest.post("/mcp/", json=ping, headers=HEADERS)).status_code == 200
    strangers = (({"host": "evil.example"}, 421), ({"origin": "https://evil.example"}, 403), ({"origin": "http://127.0.0.1:1"}, 403))
    for stranger, status in strangers:
        assert (await server.rest.post("/mcp", json=ping, headers={**HEADERS, **stranger})).status_code == status
        async with httpx.AsyncClient(base_url=server.sse_url) as client:
            assert (await client.get("/sse", headers=stranger)).status_code == status
            assert (await client.post("/messages/?session_id=" + "0" * 32, json=ping, headers=stranger)).status_code == status
    metrics = (await server.rest.get("/metrics")).text
    assert 'route="/{namespace}/mcp"' in metrics
    assert "evil" not in metrics


async def test_unavailable_engines_give_errors_instead_of_empty_results() -> None:
    recorded = Recorded(
        answers={"search.search": RedisUnavailable("Redis is away", retry_after=3), "recall.prompt": ValueError("a defect: secret")}
    )
    recorded.answers["longterm.get"] = lambda: asyncio.sleep(60)
    settings = load_settings(REQUEST_TIMEOUT_SECONDS=0.5)
    async with serving(create_app(settings, recorded.runtime)) as url, over_http(f"{url}/mcp") as session:
        assert await session.error("search_long_term_memory", text="x") == "503: Redis is away (try again in 3 s)"
        assert await session.error("memory_prompt", query="x") == "500: Internal Server Error"
    async with serving(create_app(load_settings(MCP_ON_API=False), recorded.runtime)) as url, httpx.AsyncClient(base_url=url) as client:
        assert (await client.post("/mcp", json={}, headers=HEADERS)).status_code == 404


async def test_sse_stream_outlives_request_timeout_and_ends_on_stop() -> None:
    app = create_mcp_app(load_settings(REQUEST_TIMEOUT_SECONDS=0.2, MAX_CONCURRENT_REQUESTS=1), Recorded().runtime, "sse")
    async with serving(app) as url, over_sse(f"{url}/sse") as session:
        begun = time.monotonic()

        async def much_later() -> bool:
            return (await session.call("get_current_datetime"))["unix_ts"] > 0 and time.monotonic() > begun + 0.6

        await wait_until(much_later, "three deadlines")
        app.state.mcp.stop()
        with pytest.raises(MCPError, match=r"(?i)closed"):
            await session.call("get_current_datetime")


def _call(arguments: str) -> bytes:
    call = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search_long_term_memory","arguments":'
    return f"{call}{arguments}}}}}".encode()


# Hostile bodies, and the expected part of the response: a status, or a protocol error that names the problem.
BODIES: dict[str, tuple[bytes, int, str]] = {
    "nothing": (b"", 400, "Parse error"),
    "deep": (b"[" * 90_000 + b"]" * 90_000, 400, "Parse error"),
    "deep arguments": (_call('{"text":"x","unknown":' + "[" * 90_000 + "]" * 90_000 + "}"), 400, "Parse error"),
    "many keys": (_call("{" + ",".join(f'"k{n}":1' for n in range(50_000)) + "}"), 200, "text"),
    "NaN": (b"NaN", 400, "is not a JSON-RPC"),
    "a text": (b'"what-nobody-may-read"', 400, "is not a JSON-RPC"),
    "a call of nothing": (b'{"jsonrpc":"2.0","id":{"a":"what-nobody-may-read"},"method":5}', 400, "is not a JSON-RPC"),
    "NaN as an argument": (_call('{"text":"x","limit":NaN}'), 200, "limit"),
    "lone surrogate": (_call('{"text":"x","session_id":"what-nobody-may-read \\ud800"}'), 200, "session_id"),
    "bad UTF-8": (_call('{"text":"x"}').replace(b'"x"', b'"\xff"'), 400, "Parse error"),
    "duplicate keys": (_call('{"text":"what-nobody-may-read","text":5}'), 200, "text"),
    "a long number": (b"9" * 5000, 400, "rror"),
}


@pytest.mark.parametrize("chunked", [False, True])
async def test_hostile_bodies_get_errors_without_echoed_input(server: Server, chunked: bool) -> None:
    async def pieces(body: bytes) -> Any:
        for start in range(0, len(body), 100_000):
            yield body[start : start + 100_000]

    for name, (body, status, hint) in BODIES.items():
        content: Any = pieces(body) if chunked else body
        answer = await server.rest.post("/mcp", content=content, headers=HEADERS)
        assert (answer.status_code, hint in answer.text) == (status, True), (name, answer.text[:300])
        assert "error" in answer.text.lower(), name
        assert "what-nobody-may-read" not in answer.text, name
        assert len(answer.content) < 2000, name
