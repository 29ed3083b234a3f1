"""Test MCP Inspector over stdio, and over HTTP with the old and new protocols."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.interfaces.typescript.conftest import run
from tests.support.cli import COMMAND, ROOT
from tests.support.waiting import wait_until

pytestmark = pytest.mark.integrations
FOLDER = ROOT / ".venvs" / "inspector"
CLI = FOLDER / "node_modules" / "@modelcontextprotocol" / "inspector" / "clients" / "launcher" / "build" / "index.js"


@pytest.mark.parametrize("way", ["legacy", "modern", "stdio"])
async def test_mcp_inspector_lists_and_calls_tools_resources_and_prompts(
    server_url: str, redis_url: str, way: str, node: Path, tmp_path: Path
) -> None:
    if not CLI.exists():
        pytest.skip("MCP Inspector is not installed: scripts/tests.sh typescript does that")
    if way == "stdio":
        settings = {"REDIS_URL": redis_url, "KEY_PREFIX": "inspector", "MODEL_PROVIDER": "local", "EMBEDDING_PROVIDER": "local"}
        target = [word for item in settings.items() for word in ("-e", "=".join(item))] + ["--", *COMMAND, "mcp"]
    else:
        target = ["--server-url", f"{server_url}/mcp", "--transport", "http", "--stored-auth-only", "--protocol-era", way]

    async def ask(method: str, *more: str) -> dict[str, Any]:
        file = tmp_path / "answer.json"
        options = ["--connect-timeout", "120000", "--method", method, *more, "--quiet", "--output", str(file)]
        await run(node, CLI, "--cli", *options, *target, cwd=tmp_path, HOME=str(tmp_path), MCP_STORAGE_DIR=str(tmp_path / "state"))
        return json.loads(file.read_text())

    tools = {tool["name"]: tool for tool in (await ask("tools/list", "--strict"))["tools"]}
    assert len(tools) > 20
    assert all("outputSchema" in tool for tool in tools.values())
    if way != "stdio":  # each call starts a process
        assert len((await ask("resources/templates/list"))["resourceTemplates"]) == 3
        assert [prompt["name"] for prompt in (await ask("prompts/list"))["prompts"]] == ["what_do_you_know_about_me"]
        assert [resource["uri"] for resource in (await ask("resources/list"))["resources"]] == ["ui://agent-memory/profile.html"]
    memories = json.dumps([{"id": f"inspected-{way}", "text": "Bo sails.", "user_id": "bo"}])
    stored = await ask("tools/call", "--tool-name", "create_long_term_memories", "--tool-arg", f"memories={memories}")
    assert not stored.get("isError"), stored
    query = ("text=Who sails?", 'user_id={"eq": "bo"}')
    found = await ask("tools/call", "--tool-name", "search_long_term_memory", "--tool-arg", *query)
    assert "Bo sails." in [memory["text"] for memory in found["structuredContent"]["memories"]]

    async def is_in_profile() -> bool:
        prompt = await ask("prompts/get", "--prompt-name", "what_do_you_know_about_me", "--prompt-args", "user_id=bo")
        return "Bo sails." in prompt["messages"][1]["content"]["resource"]["text"]

    await wait_until(is_in_profile, "the profile has the memory", 90)
    profile = await ask("resources/read", "--uri", "memory://bo/profile")
    assert "Bo sails." in profile["contents"][0]["text"]
    forget = ("text=Forget that I sail.", "user_id=bo", "dry_run=false")
    forgotten = await ask("tools/call", "--tool-name", "forget_memory", "--tool-arg", *forget)
    assert forgotten["structuredContent"]["matches"], forgotten
