"""Connect OAuth clients, and store their codes and refresh tokens.

A connection is an API key whose secret, the access token, changes every hour. A grant is a code or
refresh token that can be used only once. If it is used again, the key is revoked. The key is valid
only as long as the key of the person who approved the connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from secrets import token_urlsafe
from typing import Any

from agent_memory.features.access.limits import LimitStore, too_many
from agent_memory.features.access.token_store import LISTED_MS, Token, TokenStore
from agent_memory.features.access.tokens import LEASE_SECONDS, PREFIX, TokenGate
from agent_memory.foundation.core.errors import Forbidden, Unauthenticated
from agent_memory.foundation.core.feature import Services
from agent_memory.foundation.core.logs import get_logger
from agent_memory.foundation.core.permissions import access_denied
from agent_memory.foundation.core.scope import Principal, Role
from agent_memory.foundation.foundation import Foundation
from agent_memory.foundation.storage.connection import read, redis_errors, write
from agent_memory.foundation.storage.keyspace import digest
from agent_memory.foundation.storage.scripts import Script
from agent_memory_client.models import new_id

log = get_logger(__name__)

ACCESS_SECONDS = 3600
CODE_SECONDS = 60
_UNUSED_CLIENT_SECONDS = 3600
_CLIENT_SECONDS = 90 * 24 * 3600
# Requests that are under way while a client refreshes may still use the former access token.
_GRACE_MS = 60_000


@dataclass(frozen=True, slots=True)
class Wish:
    """A client's authorization request. `challenge` is the PKCE code challenge (S256)."""

    client_id: str
    redirect_uri: str
    challenge: str
    scopes: Sequence[str]


@dataclass(frozen=True, slots=True)
class Grant:
    """A code or refresh token. `key_id` is the connection's API key."""

    digest: str
    kind: str
    key_id: str
    client_id: str
    scopes: Sequence[str]
    redirect_uri: str
    challenge: str
    used: bool


class Connections:
    def __init__(self, foundation: Foundation, services: Services) -> None:
        self._client, self._keys = foundation.client, foundation.keys
        self._tokens, self._gate = services[TokenStore], services[TokenGate]
        self._limits = LimitStore(foundation.client, foundation.keys)
        self._renew = Script(foundation.client, "oauth_server/connection_renew")

    async def limit(self, name: str, per_minute: int) -> None:
        """Count an unauthenticated request toward the limit called `name`.

        Raises TooMany or RedisUnavailable.
        """
        granted, wait = await self._limits.take(f"\0oauth {name}", per_minute=per_minute, burst=per_minute, most=1)
        if not granted:
            raise too_many(int(wait) + 1)

    async def add_client(self, client_id: str, document: str) -> None:
        """Store a client's document, which expires after an hour if unused."""
        with redis_errors():
            await self._client.set(self._app(client_id), document, ex=_UNUSED_CLIENT_SECONDS)

    async def find_client(self, client_id: str) -> str | None:
        """Return a client's document, or None."""
        document = (await read(self._client, lambda pipe: pipe.get(self._app(client_id))))[0]
        return None if document is None else document.decode()

    async def approve(self, caller: Principal, wish: Wish, description: str, role: Role, users: frozenset[str] | None) -> tuple[str, str]:
        """Create a connection with no more than the caller's rights.

        Returns its code and the id of its API key. Raises Unauthenticated, Forbidden, or
        ErasureUnderWay.
        """
        if caller.users is not None and not (users and users <= caller.users):
            raise access_denied("this user", "user")
        parent, grandparent = await self._gate.digests_of(caller)
        if grandparent is not None:
            raise Forbidden("a connected app cannot connect others: log in with your own API key")
        token = Token(
            id=new_id(),
            digest=await self._gate.digest(token_urlsafe(32)),
            tenant=caller.tenant,
            role=Role.READ if caller.role is Role.READ or role is Role.READ else Role.WRITE,
            description=description,
            created=0,
            namespaces=caller.namespaces,
            users=users,
            agents=caller.agents,
            parent=parent,
            client=wish.client_id,
        )
        await self._tokens.add_token(token, CODE_SECONDS * 1000, listed_ms=0)
        code = token_urlsafe(32)
        fields: dict[Any, Any] = {"ki": "code", "id": token.id, "cl": wish.client_id, "sc": " ".join(wish.scopes)}
        fields |= {"ru": wish.redirect_uri, "cc": wish.challenge}
        key = self._grant(await self._gate.digest(code))
        await write(self._client, lambda pipe: (pipe.hset(key, mapping=fields), pipe.pexpire(key, LISTED_MS)), atomic=True)
        return code, token.id

    async def find_grant(self, kind: str, secret: str, client_id: str) -> Grant | None:
        """Return a client's code or refresh token, or None.

        If the grant was already used, revoke its connection.
        """
        name = await self._gate.digest(secret)
        fields: dict[bytes, bytes] = (await read(self._client, lambda pipe: pipe.hgetall(self._grant(name))))[0]
        text = {name.decode(): value.decode() for name, value in fields.items()}
        if text.get("ki") != kind or text["cl"] != client_id:
            return None
        grant = Grant(
            *(name, kind, text["id"], client_id, text["sc"].split()),
            *(text.get("ru", ""), text.get("cc", ""), "us" in text),
        )
        if grant.used:
            await self._revoke_stolen(grant)
            return None
        return grant

    async def renew(self, grant: Grant) -> tuple[str, str] | None:
        """Exchange a grant for an access and a refresh token. Return None if it has ended."""
        token = await self._live_key(grant)
        if token is None:
            return None
        access, refresh = PREFIX + token_urlsafe(32), token_urlsafe(32)
        new_digest = await self._gate.digest(access)
        renewed = await self._renew(
            names=self._keys.tokens,
            grant=self._grant(grant.digest),
            next_grant=self._grant(await self._gate.digest(refresh)),
            old_token=self._keys.token(token.digest),
            new_token=self._keys.token(new_digest),
            former=[self._keys.token(each) for each in token.former],
            id=token.id,
            kind="refresh",
            old_digest=token.digest,
            new_digest=new_digest,
            lifetime_ms=ACCESS_SECONDS * 1000,
            listed_ms=LISTED_MS,
            grace_ms=_GRACE_MS if grant.kind == "refresh" else 0,
        )
        if renewed < 0:
            await self._revoke_stolen(grant)
        if renewed <= 0:
            return None
        with redis_errors():
            await self._client.expire(self._app(grant.client_id), _CLIENT_SECONDS)
        return access, refresh

    async def _live_key(self, grant: Grant) -> Token | None:
        """Return the connection's API key, or None if it or the approving key is not valid."""
        token = await self._tokens.find_token(grant.key_id)
        if token is None or token.parent is None:
            return None
        try:
            await self._gate.admit_digest(token.parent)
        except Unauthenticated:
            await self.revoke(token.id)
            return None
        await self._tokens.require_none_erased(token)
        return token

    async def _revoke_stolen(self, grant: Grant) -> None:
        log.warning("grant of a connection was used twice; the connection was revoked", kind=grant.kind, token_id=grant.key_id)
        await self.revoke(grant.key_id)

    async def revoke_secret(self, secret: str, client_id: str) -> None:
        """Revoke the connection that has this access or refresh token, if there is one."""
        name = await self._gate.digest(secret)
        keys = (self._grant(name), self._keys.token(name))
        for key_id, owner in await read(self._client, lambda pipe: [pipe.hmget(key, "id", "cl") for key in keys]):
            if key_id is not None and owner == client_id.encode():
                await self.revoke(key_id.decode())

    async def revoke(self, key_id: str) -> None:
        """Delete a connection's API key. The key stops working before this returns."""
        while (token := await self._tokens.find_token(key_id)) is not None:
            if await self._tokens.remove_token(token):  # otherwise, it was renewed in the meantime
                self._gate.forget()
                await asyncio.sleep(LEASE_SECONDS)

    def _app(self, client_id: str) -> str:
        return f"{self._keys.root}app:{digest('app', client_id)}"

    def _grant(self, name: str) -> str:
        return f"{self._keys.root}grant:{name}"
