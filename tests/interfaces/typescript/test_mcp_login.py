"""Log in by OAuth with both generations of the MCP SDK for TypeScript, which Claude Code and MCP Inspector use."""

from __future__ import annotations

import asyncio
import json
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest

from tests.interfaces.oauth_server.conftest import Site, back_to, site
from tests.interfaces.typescript.conftest import MODULES

pytestmark = pytest.mark.integrations
__all__ = ["site"]
PROGRAM = Path(__file__).with_name("mcp_login.mjs")


@pytest.mark.parametrize(
    ("sdk", "mode", "version"), [("client", "auto", "2026-07-28"), ("client", "legacy", "2025-11-25"), ("sdk", "", None)]
)
async def test_typescript_sdk_goes_from_401_to_a_tool_call(
    site: Site, node: Path, tmp_path: Path, sdk: str, mode: str, version: str | None
) -> None:
    program = tmp_path / PROGRAM.name
    program.write_text(PROGRAM.read_text())
    (tmp_path / "node_modules").symlink_to(MODULES)
    browser = site.browser()
    await browser.log_in((await site.key())["token"])
    process = await asyncio.create_subprocess_exec(node, program, sdk, f"{site.url}/mcp", mode, stdin=PIPE, stdout=PIPE, stderr=PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    link = (await process.stdout.readline()).decode().strip()
    if link.startswith("http"):
        process.stdin.write(f"{back_to(await browser.answer(await browser.open(link), user='bo'))}\n".encode())
    printed, problems = await process.communicate()
    assert process.returncode == 0, problems.decode()
    answer = json.loads(printed)
    assert answer["tools"] > 20
    assert answer["stored"]["status"]
    assert answer["scope"] == "memory:read memory:write"
    assert answer.get("version") == version
