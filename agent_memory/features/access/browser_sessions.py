"""Manage sessions for browsers that logged in with an API key.

A session stores only the key's digest. Each request looks up the key's permissions again, so when a key is revoked or
expires, its sessions end, too.
"""

from __future__ import annotations

from hashlib import sha256
from secrets import token_urlsafe

from redis.asyncio import Redis

from agent_memory.features.access.tokens import TokenGate
from agent_memory.foundation.core.errors import Unauthenticated
from agent_memory.foundation.core.scope import Principal
from agent_memory.foundation.storage.connection import read, redis_errors
from agent_memory.foundation.storage.keyspace import Keys

LIFETIME_SECONDS = 12 * 3600


class BrowserSessions:
    """Opens, finds and deletes browser sessions. `gate` is None if the server does not accept API keys."""

    def __init__(self, client: Redis, keys: Keys, gate: TokenGate | None) -> None:
        self._client = client
        self._keys = keys
        self._gate = gate

    async def open_session(self, credential: str) -> str:
        """Open a session and return its secret name. Raises Unauthenticated and RedisUnavailable."""
        if self._gate is None:
            raise Unauthenticated("this server takes no API keys: let a proxy add the login provider's token to each request")
        await self._gate.admit(credential)
        name = token_urlsafe(32)
        with redis_errors():
            await self._client.set(self._key(name), await self._gate.digest(credential), ex=LIFETIME_SECONDS)
        return name

    async def find_principal(self, name: str) -> Principal | None:
        """Return the current permissions of the session's key, or None if the session or the key no longer exists.

        Raises RedisUnavailable.
        """
        digest = (await read(self._client, lambda pipe: pipe.get(self._key(name))))[0]
        if digest is None or self._gate is None:
            return None
        try:
            return await self._gate.admit_digest(digest.decode())
        except Unauthenticated:
            return None

    async def delete_session(self, name: str) -> None:
        with redis_errors():
            await self._client.delete(self._key(name))

    def _key(self, name: str) -> str:
        return self._keys.browser_session(sha256(name.encode()).hexdigest())
