"""Test OAuth with MCP SDK 1, which `scripts/tests.sh compat` installs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interfaces.oauth_server.conftest import Site, play_login
from tests.support.cli import ROOT

PYTHON = ROOT / ".venvs" / "mcp-1" / "bin" / "python"
PROGRAM = Path(__file__).with_name("mcp_1_login.py")


async def test_mcp_1_client_logs_in_after_401_and_uses_tools_resources_and_prompts(site: Site) -> None:
    if not PYTHON.exists():
        pytest.skip("mcp 1 is not installed: scripts/tests.sh compat does that")
    answer = await play_login(site, PYTHON, PROGRAM, f"{site.url}/mcp")
    assert answer["tools"] > 20
    assert answer["stored"]["status"]
    assert answer["profile"]["user_id"] == "bo"
    assert answer["prompt"] == ["text", "resource"]
    assert answer["version"] == "2025-11-25"
