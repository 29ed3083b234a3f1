"""Open MCP client sessions over each transport and read the results."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
from mcp.client import Client
from mcp.client.sse import sse_client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult, TextContent
from pydantic_core import from_json

from tests.support.cli import COMMAND, clean_environment, light_model


class Session:
    """A connected client."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.called: set[str] = set()

    async def result(self, tool: str, /, **arguments: Any) -> CallToolResult:
        """Call a tool and return its result, which may be an error."""
        self.called.add(tool)
        return await self.client.call_tool(tool, arguments)

    async def call(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """Call a tool, assert that it succeeds, and return its structured content."""
        found = await self.result(tool, **arguments)
        assert not found.is_error, found.content
        assert from_json(text_of(found)) == found.structured_content
        return found.structured_content

    async def error(self, tool: str, /, **arguments: Any) -> str:
        """Call a tool, assert that it fails, and return the error text."""
        found = await self.result(tool, **arguments)
        assert found.is_error, found.structured_content
        assert found.structured_content is None
        return text_of(found)


def text_of(found: CallToolResult) -> str:
    """Return the text of a result that has a single text block."""
    (block,) = found.content
    assert isinstance(block, TextContent)
    return block.text


@asynccontextmanager
async def over_http(url: str, *, mode: str = "auto", headers: dict[str, str] | None = None) -> AsyncGenerator[Session]:
    """Open a session over streamable HTTP. "legacy" selects the older handshake protocol."""
    async with (
        httpx2.AsyncClient(headers=headers, timeout=30) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode) as client,
    ):
        yield Session(client)


@asynccontextmanager
async def over_sse(url: str, *, headers: dict[str, str] | None = None) -> AsyncGenerator[Session]:
    async with Client(sse_client(url, headers=headers), mode="legacy") as client:
        yield Session(client)


@asynccontextmanager
async def over_stdio(folder: Path, options: Sequence[str] = (), **environment: str) -> AsyncGenerator[Session]:
    """Open a session with a new `agent-memory mcp` process."""
    program = StdioServerParameters(
        command=COMMAND[0], args=[*COMMAND[1:], "mcp", *options], env=clean_environment(**light_model(), **environment), cwd=folder
    )
    async with Client(program) as client:
        yield Session(client)
