"""Manage browser sessions.

A session never outlives the API key or login token that opened it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from secrets import token_urlsafe
from time import time
from typing import TYPE_CHECKING

from redis.asyncio import Redis

from agent_memory.features.access.tokens import TokenGate
from agent_memory.foundation.core.errors import Forbidden, NotFound, Unauthenticated
from agent_memory.foundation.core.scope import Principal
from agent_memory.foundation.storage.connection import read, redis_errors
from agent_memory.foundation.storage.keyspace import Keys

if TYPE_CHECKING:
    from agent_memory.features.access.login_provider import LoginProvider

LIFETIME_SECONDS = 12 * 3600
LOGIN_SECONDS = 600


class BrowserSessions:
    """Opens, finds and deletes browser sessions. If `gate` is None, API keys are not accepted."""

    def __init__(self, client: Redis, keys: Keys, gate: TokenGate | None, provider: LoginProvider | None) -> None:
        self._client = client
        self._keys = keys
        self._gate = gate
        self._provider = provider

    async def open_session(self, credential: str) -> str:
        """Open a session and return its secret name. Raises Unauthenticated and RedisUnavailable."""
        if self._gate is None:
            raise Unauthenticated("this server accepts no API keys: set OAUTH2_CLIENT_ID, or let a proxy add tokens to requests")
        await self._gate.admit(credential)
        return await self._open(await self._gate.digest(credential), time() + LIFETIME_SECONDS)

    @property
    def provider(self) -> LoginProvider:
        """The login provider. Raises NotFound if OAUTH2_CLIENT_ID is not set."""
        if self._provider is None:
            raise NotFound("this server has no login provider for browsers: set OAUTH2_CLIENT_ID")
        return self._provider

    async def finish_login(self, cookie: str, answer: Mapping[str, str]) -> tuple[str, str]:
        """Open a session after a provider login. Return its secret name and the next page.

        Raises NotFound, RedisUnavailable, any error from `LoginProvider.finish`, and Forbidden if
        the login was already used.
        """
        state, claims, page = await self.provider.finish(cookie, answer)
        with redis_errors():
            if not await self._client.set(self._key(state), b"", nx=True, ex=LOGIN_SECONDS):
                raise Forbidden("this login was used before: log in again")
        return await self._open(json.dumps(claims), min(int(claims["exp"]), time() + LIFETIME_SECONDS)), page

    async def _open(self, content: str, end: float) -> str:
        name = token_urlsafe(32)
        with redis_errors():
            await self._client.set(self._key(name), content, exat=int(end))
        return name

    async def find_principal(self, name: str) -> Principal | None:
        """Return the session's permissions, or None if it is no longer valid. Raises RedisUnavailable."""
        content = (await read(self._client, lambda pipe: pipe.get(self._key(name))))[0] or b""
        try:
            if content.startswith(b"{"):
                return self.provider.principal_of(json.loads(content))
            return await self._gate.admit_digest(content.decode()) if content and self._gate else None
        except (Unauthenticated, Forbidden, NotFound):
            return None

    async def delete_session(self, name: str) -> None:
        with redis_errors():
            await self._client.delete(self._key(name))

    def _key(self, name: str) -> str:
        return self._keys.browser_session(sha256(name.encode()).hexdigest())
