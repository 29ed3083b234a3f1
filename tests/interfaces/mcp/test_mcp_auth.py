"""Test that MCP requires the same credentials as REST and enforces the same scopes."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from mcp.shared.exceptions import MCPError
from mcp.types import CallToolResult
from ulid import ULID

from agent_memory.foundation.core.errors import StartupError, Unauthenticated
from agent_memory.foundation.core.settings import load_settings
from agent_memory.interfaces.http.app import create_app, create_mcp_app
from agent_memory.interfaces.mcp.stdio import StdioServer
from agent_memory.runtime import Runtime, open_runtime
from tests.support.api import serving
from tests.support.mcp import over_http, over_sse, text_of

OPERATOR = "operator-key-of-the-tests"
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
HEADERS = {"accept": "application/json, text/event-stream"}


@dataclass(frozen=True)
class Guarded:
    """A server that requires API keys, with its runtime and a way to create keys."""

    url: str
    sse_url: str
    runtime: Runtime
    key: Callable[..., Any]


@pytest.fixture(scope="module")
async def guarded(redis_url: str) -> AsyncGenerator[Guarded, None]:
    local = {"MODEL_PROVIDER": "local", "EMBEDDING_PROVIDER": "local"}
    settings = load_settings(KEY_PREFIX=f"mcp-auth-{ULID()}"[:30], AUTH_MODE="token", AUTH_ADMIN_TOKEN=OPERATOR, **local)
    async with (
        open_runtime(settings, redis_url) as runtime,
        serving(create_app(settings, runtime)) as url,
        serving(create_mcp_app(settings, runtime, "sse")) as sse_url,
        httpx.AsyncClient(base_url=url, headers=bearer(OPERATOR)) as rest,
    ):

        async def key(**wanted: Any) -> str:
            answer = await rest.post("/v1/auth/tokens", json={"description": "a test's", **wanted})
            assert answer.status_code == 200, answer.text
            return answer.json()["token"]

        yield Guarded(url, sse_url, runtime, key)


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def status(found: CallToolResult) -> int:
    """Return the HTTP status that REST would return."""
    return int(text_of(found)[:3]) if found.is_error else 200


async def test_requests_without_a_valid_key_get_401(guarded: Guarded) -> None:
    async with httpx.AsyncClient() as client:
        for headers in ({}, bearer("wrong"), {"Authorization": "Basic eDp5"}):
            for method, url in (
                ("POST", f"{guarded.url}/mcp"),
                ("POST", f"{guarded.url}/some-namespace/mcp"),
                ("GET", f"{guarded.sse_url}/sse"),
                ("POST", f"{guarded.sse_url}/messages/?session_id={'0' * 32}"),
            ):
                answer = await client.request(method, url, json=PING, headers={**HEADERS, **headers})
                assert answer.status_code == 401, (method, url)


@pytest.mark.parametrize("transport", ["streamable-http", "sse"])
async def test_key_has_the_same_scope_as_in_rest(transport: str, guarded: Guarded) -> None:
    mine, foreign = f"mine-{ULID()}", f"foreign-{ULID()}"
    connect = over_http if transport == "streamable-http" else over_sse
    url = f"{guarded.url}/mcp" if transport == "streamable-http" else f"{guarded.sse_url}/sse"
    async with connect(url, headers=bearer(await guarded.key(role="write", namespaces=[foreign]))) as other:
        await other.call("create_long_term_memories", memories=[{"id": f"{foreign}-1", "text": "A secret.", "namespace": foreign}])
    limited = bearer(await guarded.key(role="write", namespaces=[mine]))
    async with connect(url, headers=limited) as session, httpx.AsyncClient(base_url=guarded.url, headers=limited) as rest:
        await session.call("create_long_term_memories", memories=[{"text": "My own.", "namespace": mine}])
        assert (await session.call("search_long_term_memory", text=None))["total"] == 1
        for asked in ({"namespace": {"eq": foreign}}, {"namespace": {"ne": mine}}):
            found = await session.result("search_long_term_memory", text=None, **asked)
            assert found.is_error or found.structured_content["total"] == 0
        same = await rest.get(f"/v1/long-term-memory/{foreign}-1")
        assert status(await session.result("get_long_term_memory", memory_id=f"{foreign}-1")) == same.status_code
        same = await rest.put("/v1/working-memory/s", json={"namespace": foreign})
        assert status(await session.result("set_working_memory", session_id="s", namespace=foreign)) == same.status_code
    async with connect(url, headers=bearer(await guarded.key(role="read"))) as reader:
        assert (await reader.error("create_long_term_memories", memories=[{"text": "x"}])).startswith("403: ")
        assert (await reader.error("compact_long_term_memories")).startswith("403: ")
        assert (await reader.call("get_long_term_memory", memory_id=f"{foreign}-1"))["text"] == "A secret."


async def test_sse_stream_accepts_messages_only_from_its_owner(guarded: Guarded) -> None:
    first, second = bearer(await guarded.key(role="read")), bearer(await guarded.key(role="read"))
    async with httpx.AsyncClient(base_url=guarded.sse_url) as client, client.stream("GET", "/sse", headers=first) as stream:
        lines = stream.aiter_lines()
        assert await anext(lines) == "event: endpoint"
        path = (await anext(lines)).removeprefix("data: ")
        assert (await client.post(path, json=PING, headers=second)).status_code == 404
        assert (await client.post(path, json=PING, headers=first)).status_code == 202


async def test_stdio_uses_the_scope_of_its_token(guarded: Guarded) -> None:
    def settings(**given: str) -> Any:
        return load_settings(AUTH_MODE="token", AUTH_ADMIN_TOKEN=OPERATOR, **given)

    def server(**given: str) -> StdioServer:
        return StdioServer(settings(**given), guarded.runtime)

    with pytest.raises(StartupError, match="MCP_TOKEN"):
        server()
    with pytest.raises(Unauthenticated):
        await server(MCP_TOKEN="not a key").find_caller(None)
    token = await guarded.key(role="read", namespaces=["mine"])
    caller = await server(MCP_TOKEN=token, DEFAULT_MCP_NAMESPACE="mine", DEFAULT_MCP_USER_ID="ada").find_caller(None)
    assert (caller.scope.namespaces, caller.scope.may_write, caller.namespace, caller.user_id) == (
        frozenset({"mine"}),
        False,
        "mine",
        "ada",
    )


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_resources_and_prompt_show_only_data_in_the_keys_scope(guarded: Guarded, mode: Any) -> None:
    ana, bo = f"ana-{ULID()}", f"bo-{ULID()}"
    async with httpx.AsyncClient(base_url=guarded.url, headers=bearer(OPERATOR)) as rest:
        for user in (ana, bo):
            (await rest.put("/v1/blocks/human", params={"user_id": user}, json={"value": f"secret of {user}"})).raise_for_status()
            said = {"messages": [{"role": "user", "content": f"secret of {user}"}], "user_id": user}
            (await rest.put(f"/v1/working-memory/{user}", json=said)).raise_for_status()
    async with over_http(f"{guarded.url}/mcp", headers=bearer(await guarded.key(role="read", users=[ana])), mode=mode) as session:
        client = session.client
        listed = {str(each.uri) for each in (await client.list_resources()).resources}
        assert listed == {"ui://agent-memory/profile.html", f"memory://{ana}/profile", f"memory://{ana}/blocks"}
        for uri in (*listed, f"memory://{ana}/sessions/{ana}"):
            assert bo not in str(await client.read_resource(uri))
        assert f"secret of {ana}" in str(await client.read_resource(f"memory://{ana}/blocks"))
        for uri in (f"memory://{bo}/profile", f"memory://{bo}/blocks", f"memory://{bo}/sessions/{bo}", f"memory://{ana}/sessions/{bo}"):
            with pytest.raises(MCPError, match=r"403|404") as refused:
                await client.read_resource(uri)
            assert "secret" not in str(refused.value)
        with pytest.raises(MCPError, match="403"):
            await client.get_prompt("what_do_you_know_about_me", {"user_id": bo})
    for path, wanted in (("/mcp", {"tenant": "other"}), ("/elsewhere/mcp", {"namespaces": ["home"]}), ("/mcp", {"namespaces": ["home"]})):
        async with over_http(f"{guarded.url}{path}", headers=bearer(await guarded.key(**wanted)), mode=mode) as session:
            for uri in (f"memory://{ana}/blocks", f"memory://{ana}/sessions/{ana}"):
                try:
                    found = str(await session.client.read_resource(uri))
                except MCPError as error:
                    found = str(error)
                assert "secret" not in found
