"""Test OAuth with both major versions of the MCP SDK for TypeScript."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interfaces.oauth_server.conftest import Site, play_login, site
from tests.interfaces.typescript.conftest import MODULES

pytestmark = pytest.mark.integrations
__all__ = ["site"]
PROGRAM = Path(__file__).with_name("mcp_login.mjs")


@pytest.mark.parametrize(
    ("sdk", "mode", "version"), [("client", "auto", "2026-07-28"), ("client", "legacy", "2025-11-25"), ("sdk", "", None)]
)
async def test_typescript_sdk_logs_in_after_401_and_calls_a_tool(
    site: Site, node: Path, tmp_path: Path, sdk: str, mode: str, version: str | None
) -> None:
    program = tmp_path / PROGRAM.name
    program.write_text(PROGRAM.read_text())
    (tmp_path / "node_modules").symlink_to(MODULES)
    answer = await play_login(site, node, program, sdk, f"{site.url}/mcp", mode)
    assert answer["tools"] > 20
    assert answer["stored"]["status"]
    assert answer["scope"] == "memory:read memory:write"
    assert answer.get("version") == version
