"""Log in over OAuth with MCP SDK 1.

Usage: `mcp_1_login.py URL`. Prints a link, reads the redirect URL, and prints the server's
responses.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any
from urllib.parse import parse_qs, urlsplit

from mcp import ClientSession
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamablehttp_client
from mcp.shared.auth import OAuthClientMetadata
from pydantic import AnyUrl


class Storage:
    def __init__(self) -> None:
        self.tokens: Any = None
        self.client: Any = None

    async def get_tokens(self) -> Any:
        return self.tokens

    async def set_tokens(self, tokens: Any) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> Any:
        return self.client

    async def set_client_info(self, client_info: Any) -> None:
        self.client = client_info


async def show(link: str) -> None:
    print(link, flush=True)


async def callback() -> tuple[str, str | None]:
    answer = parse_qs(urlsplit((await asyncio.to_thread(sys.stdin.readline)).strip()).query)
    return answer["code"][0], answer["state"][0]


async def main(url: str) -> None:
    metadata = OAuthClientMetadata(client_name="SDK 1", redirect_uris=[AnyUrl("https://app.example/callback")])
    login = OAuthClientProvider(url, metadata, Storage(), show, callback)
    async with streamablehttp_client(url, auth=login) as (incoming, outgoing, _), ClientSession(incoming, outgoing) as session:
        begun = await session.initialize()
        tools = (await session.list_tools()).tools
        stored = await session.call_tool("create_long_term_memories", {"memories": [{"text": "Bo sails."}]})
        profile = await session.read_resource(AnyUrl("memory://bo/profile"))
        prompt = await session.get_prompt("what_do_you_know_about_me")
        answer = {
            "tools": len(tools),
            "stored": stored.structuredContent,
            "profile": json.loads(profile.contents[0].text),
            "prompt": [message.content.type for message in prompt.messages],
            "version": begun.protocolVersion,
        }
    print(json.dumps(answer))


asyncio.run(main(sys.argv[1]))
