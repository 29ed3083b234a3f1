"""List and call everything with MCP Inspector over HTTP, in both eras of the protocol."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.interfaces.typescript.conftest import run
from tests.support.cli import ROOT

pytestmark = pytest.mark.integrations
FOLDER = ROOT / ".venvs" / "inspector"
CLI = FOLDER / "node_modules" / "@modelcontextprotocol" / "inspector" / "clients" / "launcher" / "build" / "index.js"


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_inspector_lists_and_calls_everything(server_url: str, era: str, node: Path, tmp_path: Path) -> None:
    if not CLI.exists():
        pytest.skip("MCP Inspector is not installed: scripts/tests.sh typescript does that")
    target = ["--server-url", f"{server_url}/mcp", "--transport", "http", "--stored-auth-only"]

    async def ask(method: str, *more: str) -> dict[str, Any]:
        file = tmp_path / "answer.json"
        options = ["--connect-timeout", "120000", "--protocol-era", era, "--method", method, *more, "--quiet", "--output", str(file)]
        await run(node, CLI, "--cli", *options, *target, cwd=tmp_path, HOME=str(tmp_path), MCP_STORAGE_DIR=str(tmp_path / "state"))
        return json.loads(file.read_text())

    tools = {tool["name"]: tool for tool in (await ask("tools/list", "--strict"))["tools"]}
    assert len(tools) > 20
    assert all("outputSchema" in tool for tool in tools.values())
    assert len((await ask("resources/templates/list"))["resourceTemplates"]) == 3
    assert [prompt["name"] for prompt in (await ask("prompts/list"))["prompts"]] == ["what_do_you_know_about_me"]
    memories = json.dumps([{"id": f"inspected-{era}", "text": "Bo sails.", "user_id": "bo"}])
    stored = await ask("tools/call", "--tool-name", "create_long_term_memories", "--tool-arg", f"memories={memories}")
    assert not stored.get("isError"), stored
    read = await ask("tools/call", "--tool-name", "get_long_term_memory", "--tool-arg", f"memory_id=inspected-{era}")
    assert read["structuredContent"]["text"] == "Bo sails."
    profile = await ask("resources/read", "--uri", "memory://bo/profile")
    assert json.loads(profile["contents"][0]["text"]) is not None
