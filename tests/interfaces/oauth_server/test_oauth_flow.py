"""Test OAuth with the MCP SDK's client, from the first 401 to a tool call."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest
from mcp.client import Client
from mcp.client.auth import OAuthClientProvider, TokenStorage
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl

from tests.interfaces.oauth_server.conftest import CALLBACK, Browser, Site, sent_back


class Storage(TokenStorage):
    tokens: OAuthToken | None = None
    client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


def sdk_login(site: Site, browser: Browser, storage: Storage, path: str = "/mcp", **form: str) -> OAuthClientProvider:
    answers: list[dict[str, str]] = []

    async def show(link: str) -> None:
        answers.append(sent_back(await browser.answer(await browser.open(link), **form)))

    async def callback() -> AuthorizationCodeResult:
        return AuthorizationCodeResult.model_validate(answers[-1])

    metadata = OAuthClientMetadata(client_name="SDK", redirect_uris=[AnyUrl(CALLBACK)])
    return OAuthClientProvider(site.url + path, metadata, storage, show, callback)


@pytest.mark.parametrize("path", ["/mcp", "/team/mcp"])
async def test_sdk_client_logs_in_after_401_and_calls_a_tool(site: Site, path: str) -> None:
    browser, storage = site.browser(), Storage()
    await browser.log_in((await site.key())["token"])
    login = sdk_login(site, browser, storage, path, user="ada")
    async with httpx2.AsyncClient(auth=login) as http, Client(streamable_http_client(site.url + path, http_client=http)) as memory:
        stored = await memory.call_tool("create_long_term_memories", {"memories": [{"text": "Ada is allergic to peanuts."}]})
        assert not stored.is_error, stored
        found: Any = await memory.call_tool("search_long_term_memory", {"text": "peanuts"})
    assert found.structured_content["memories"][0]["user_id"] == "ada"
    assert storage.tokens is not None
    assert storage.tokens.scope == "memory:read memory:write"
    (key,) = [key for key in await site.keys() if key["description"].startswith("SDK") and key["users"] == ["ada"]]
    await site.operator.delete(f"/v1/auth/tokens/{key['id']}")
    assert not await site.app().may_read(storage.tokens.access_token)


async def test_sdk_client_refreshes_its_token(site: Site) -> None:
    browser, storage = site.browser(), Storage()
    await browser.log_in((await site.key())["token"])
    login = sdk_login(site, browser, storage)
    async with httpx2.AsyncClient(auth=login) as http, Client(streamable_http_client(f"{site.url}/mcp", http_client=http)) as memory:
        await memory.list_tools()
        first = storage.tokens
        login.context.token_expiry_time = 1
        await memory.call_tool("get_current_datetime")
    assert first is not None
    assert storage.tokens is not None
    assert storage.tokens.access_token != first.access_token
