"""Test resources, the prompt and elicitation with clients for the old and new protocols."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from mcp import types
from mcp.client import Client
from mcp.server.apps import APP_MIME_TYPE, EXTENSION_ID
from mcp.shared.exceptions import MCPError

from tests.interfaces.mcp.conftest import Server
from tests.support.waiting import wait_until

MODES = ("auto", "legacy")


@asynccontextmanager
async def connected(server: Server, mode: Any = "auto", path: str = "/mcp", **options: Any) -> AsyncGenerator[Client]:
    async with Client(server.url + path, mode=mode, **options) as client:
        yield client


def content(result: types.ReadResourceResult) -> Any:
    (only,) = result.contents
    assert isinstance(only, types.TextResourceContents)
    return json.loads(only.text)


@pytest.mark.parametrize("mode", MODES)
async def test_resources_show_profile_blocks_and_sessions_of_a_user(server: Server, mode: str) -> None:
    user = f"Zoë/{mode}"
    said = {"messages": [{"role": "user", "content": "I sail."}], "user_id": user}
    (await server.rest.put("/v1/working-memory/a%20b", json=said)).raise_for_status()
    (await server.rest.put("/v1/blocks/human", params={"user_id": user}, json={"value": "Calls herself Zo."})).raise_for_status()
    async with connected(server, mode) as client:
        templates = (await client.list_resource_templates()).resource_templates
        assert {each.uri_template for each in templates} == {
            f"memory://{{user_id}}/{each}" for each in ("profile", "blocks", "sessions/{session_id}")
        }
        begin = f"memory://Zo%C3%AB%2F{mode}"
        assert content(await client.read_resource(f"{begin}/blocks"))["blocks"][0]["value"] == "Calls herself Zo."
        assert content(await client.read_resource(f"{begin}/sessions/a%20b"))["messages"][0]["content"] == "I sail."
        assert content(await client.read_resource(f"{begin}/profile"))["static"] == []
        for uri in (
            f"{begin}/sessions/none",
            f"{begin}/sessions",
            f"{begin}/profile/x",
            f"{begin}/other",
            "memory:///profile",
            "file:///etc/passwd",
        ):
            with pytest.raises(MCPError, match="404"):
                await client.read_resource(uri)
        with pytest.raises(MCPError, match="422"):
            await client.read_resource("memory://%ff/profile")
        assert [str(each.uri) for each in (await client.list_resources()).resources] == ["ui://agent-memory/profile.html"]


@pytest.mark.parametrize("mode", MODES)
async def test_mcp_prompt_includes_the_profile_if_a_user_is_given(server: Server, mode: str) -> None:
    async with connected(server, mode) as client:
        (prompt,) = (await client.list_prompts()).prompts
        alone = await client.get_prompt(prompt.name)
        assert [each.content.type for each in alone.messages] == ["text"]
        with_profile = await client.get_prompt(prompt.name, {"user_id": "ada"})
        assert [each.content.type for each in with_profile.messages] == ["text", "resource"]
        with pytest.raises(MCPError, match="404"):
            await client.get_prompt("other")


async def remembered(server: Server, user: str, *texts: str) -> None:
    memories = [{"id": f"{user}-{number}", "text": text, "user_id": user} for number, text in enumerate(texts)]
    (await server.rest.post("/v1/long-term-memory/", json={"memories": memories})).raise_for_status()

    async def searchable() -> bool:
        found = await server.rest.post("/v1/long-term-memory/search", json={"text": "dog", "user_id": {"eq": user}})
        return found.json()["total"] == len(texts)

    await wait_until(searchable, "the memories can be found")


async def left(server: Server, user: str) -> set[str]:
    found = await server.rest.post("/v1/long-term-memory/search", json={"text": "", "user_id": {"eq": user}})
    return {memory["id"] for memory in found.json()["memories"]}


def choosing(user: str, *numbers: int, action: Any = "accept") -> tuple[Any, list[types.ElicitRequestFormParams]]:
    """Return a callback that chooses these memories, and the list of questions it receives."""
    asked: list[types.ElicitRequestFormParams] = []

    async def answer(context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        assert isinstance(params, types.ElicitRequestFormParams)
        asked.append(params)
        return types.ElicitResult(
            action=action, content={"choice": [f"{user}-{number}" for number in numbers]} if action == "accept" else None
        )

    return answer, asked


async def test_forgetting_asks_the_user_which_memories_are_meant(server: Server) -> None:
    user = "asker"
    await remembered(server, user, "Ada's dog is called Rex.", "Ada's dog likes the sea.", "Ada plays chess.")
    answer, asked = choosing(user, 1)
    async with connected(server, elicitation_callback=answer) as client:
        result = await client.call_tool("forget_memory", {"text": "Ada's dog", "user_id": user})
    assert result.structured_content is not None
    assert result.structured_content["receipt_id"]
    assert await left(server, user) == {f"{user}-0", f"{user}-2"}
    (question,) = asked
    choices = question.requested_schema["properties"]["choice"]["items"]["anyOf"]
    assert {"const": f"{user}-0", "title": "Ada's dog is called Rex."} in choices


@pytest.mark.parametrize(("action", "numbers"), [("decline", ()), ("cancel", ()), ("accept", ()), ("accept", (7,))])
async def test_nothing_is_forgotten_without_a_valid_choice(server: Server, action: str, numbers: tuple[int, ...]) -> None:
    user = f"keeper-{action}-{len(numbers)}"
    await remembered(server, user, "Ada's dog is called Rex.")
    answer, asked = choosing(user, *numbers, action=action)
    async with connected(server, elicitation_callback=answer) as client:
        result = await client.call_tool("forget_memory", {"text": "Ada's dog", "user_id": user, "dry_run": False})
    assert len(asked) == 1
    assert result.structured_content is not None
    assert result.structured_content["receipt_id"] is None
    assert await left(server, user) == {f"{user}-0"}


@pytest.mark.parametrize("mode", MODES)
async def test_clients_without_elicitation_get_the_preview(server: Server, mode: str) -> None:
    user = f"silent-{mode}"
    await remembered(server, user, "Ada's dog is called Rex.")
    answer, asked = choosing(user, 0)
    options = {"elicitation_callback": answer} if mode == "legacy" else {}
    async with connected(server, mode, **options) as client:
        result = await client.call_tool("forget_memory", {"text": "Ada's dog", "user_id": user})
        preview: Any = result.structured_content
        assert (preview["dry_run"], len(preview["matches"])) == (True, 1)
        assert await left(server, user) == {f"{user}-0"}
        await client.call_tool("forget_memory", {"text": "Ada's dog", "user_id": user, "dry_run": False})
    assert asked == []
    assert await left(server, user) == set()


async def test_explicit_preview_asks_no_question(server: Server) -> None:
    user = "previewer"
    await remembered(server, user, "Ada's dog is called Rex.")
    answer, asked = choosing(user, 0)
    async with connected(server, elicitation_callback=answer) as client:
        await client.call_tool("forget_memory", {"text": "Ada's dog", "user_id": user, "dry_run": True})
    assert asked == []
    assert await left(server, user) == {f"{user}-0"}


META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "recorded", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
}


async def call(server: Server, method: str, params: dict[str, Any], *, name: str | None = None) -> dict[str, Any]:
    """Send a raw request with protocol version 2026-07-28."""
    headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2026-07-28", "mcp-method": method}
    headers |= {"mcp-name": name} if name else {}
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": META}}
    async with httpx.AsyncClient() as client:
        answer = await client.post(f"{server.url}/mcp", json=body, headers=headers)
    assert answer.status_code == 200, answer.text
    return answer.json()["result"]


async def test_stateless_protocol_returns_the_specified_wire_fields(server: Server) -> None:
    discovered = await call(server, "server/discover", {})
    assert discovered["resultType"] == "complete"
    assert "2026-07-28" in discovered["supportedVersions"]
    assert {"tools", "resources", "prompts"} <= discovered["capabilities"].keys()
    tools = await call(server, "tools/list", {})
    assert (tools["resultType"], tools["cacheScope"]) == ("complete", "public")
    assert tools["ttlMs"] == 3_600_000
    listed = await call(server, "resources/list", {})
    assert (listed["cacheScope"], listed["ttlMs"]) == ("private", 0)
    read = await call(server, "resources/read", {"uri": "memory://ada/profile"}, name="memory://ada/profile")
    assert (read["resultType"], read["cacheScope"]) == ("complete", "private")
    user = "wire"
    await remembered(server, user, "Ada's dog is called Rex.", "Ada's dog likes the sea.")
    asked = {"name": "forget_memory", "arguments": {"text": "Ada's dog", "user_id": user}}
    question = await call(server, "tools/call", asked, name="forget_memory")
    assert question["resultType"] == "input_required"
    assert question["inputRequests"]["choice"]["method"] == "elicitation/create"
    answer = {"choice": {"action": "accept", "content": {"choice": [f"{user}-0"]}}}
    done = await call(server, "tools/call", {**asked, "inputResponses": answer}, name="forget_memory")
    assert done["structuredContent"]["receipt_id"]
    assert await left(server, user) == {f"{user}-1"}


@pytest.mark.parametrize("mode", MODES)
async def test_hosts_can_show_the_profile_as_an_app(server: Server, mode: str) -> None:
    async with connected(server, mode) as client:
        # Older protocols have no server extensions; hosts inspect the tool.
        assert (client.server_capabilities.extensions or {}) == ({EXTENSION_ID: {}} if mode == "auto" else {})
        by_uri = {(each.meta or {}).get("ui", {}).get("resourceUri"): each.name for each in (await client.list_tools()).tools}
        (uri,) = [uri for uri in by_uri if uri]
        assert by_uri[uri] == "get_profile"
        assert (uri, APP_MIME_TYPE) in {(each.uri, each.mime_type) for each in (await client.list_resources()).resources}
        (page,) = (await client.read_resource(uri)).contents
        assert isinstance(page, types.TextResourceContents)
        assert page.mime_type == APP_MIME_TYPE
        # The page loads nothing from other servers, and inserts user texts as text nodes only.
        assert not re.search(r"https?://|src=|href=|@import|innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval", page.text)
