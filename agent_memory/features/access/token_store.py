"""Store API keys in Redis under keyed digests. Secrets are never stored."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from secrets import token_bytes
from typing import Any, Literal

from redis.asyncio import Redis

from agent_memory.foundation.core.scope import Role
from agent_memory.foundation.storage.connection import read, redis_errors
from agent_memory.foundation.storage.erasures import ErasureGuard
from agent_memory.foundation.storage.keyspace import Keys
from agent_memory.foundation.storage.scripts import Script

# The precision of the last-used time, and how long expired tokens remain listed.
_USED_STEP_MS = 60_000
LISTED_MS = 30 * 24 * 3600 * 1000


@dataclass(frozen=True, slots=True)
class Token:
    """A stored API key. Times are in ms.

    `former` contains the digests of replaced secrets that may still be valid. If `parent` is set,
    the key is valid only as long as the key with that digest is.
    """

    id: str
    digest: str
    tenant: str
    role: Role
    description: str
    created: int
    expires: int | None = None
    used: int | None = None
    namespaces: frozenset[str] | None = None
    users: frozenset[str] | None = None
    agents: frozenset[str] | None = None
    former: tuple[str, ...] = ()
    parent: str | None = None
    client: str | None = None


class TokenStore:
    """Reads and writes all tenants' API keys. Permissions are checked in `access/tokens.py`."""

    def __init__(self, client: Redis, keys: Keys, erasures_of: Callable[[str], ErasureGuard]) -> None:
        """Create a store in the first bucket. `erasures_of` returns the guard in a tenant's bucket."""
        self._client = client
        self._keys = keys
        self._look_up = Script(client, "access/token_look_up")
        self._add = Script(client, "access/token_add")
        self._rotate = Script(client, "access/token_rotate")
        self._remove = Script(client, "access/token_remove")
        self._narrow = Script(client, "access/token_narrow")
        self._erasures_of = erasures_of

    async def secret(self) -> bytes:
        """Return the installation's secret, the default digest key. Create it if missing."""
        key = self._keys.token_secret
        with redis_errors():
            await self._client.set(key, token_bytes(32).hex(), nx=True)
            secret: Any = await self._client.get(key)
            return bytes(secret)

    async def look_up(self, digest: str) -> tuple[Token, int] | None:
        """Look up a token and record its use. Return it with the current time (ms), or None."""
        reply = await self._look_up(token=self._keys.token(digest), step_ms=_USED_STEP_MS)
        if not reply:
            return None
        return _decode(digest, dict(zip(reply[1::2], reply[2::2], strict=True))), int(reply[0])

    async def add_token(self, token: Token, lifetime_ms: int, listed_ms: int = LISTED_MS) -> int | None:
        """Store a token and return its creation time (ms), or None if the digest already exists.

        If `lifetime_ms` is 0, the token never expires. Raises ErasureUnderWay.
        """
        await self.require_none_erased(token)
        fields = ["id", token.id, "tn", token.tenant, "ro", token.role.value, "de", token.description]
        for name, limit in (("ns", token.namespaces), ("us", token.users), ("ag", token.agents)):
            if limit is not None:
                fields += [name, json.dumps(sorted(limit), ensure_ascii=False)]
        if token.parent is not None and token.client is not None:
            fields += ["by", token.parent, "cl", token.client]
        created = await self._add(
            names=self._keys.tokens,
            token=self._keys.token(token.digest),
            id=token.id,
            digest=token.digest,
            lifetime_ms=lifetime_ms,
            listed_ms=listed_ms,
            fields=fields,
        )
        return int(created) or None

    async def replace_secret(self, token: Token, digest: str, grace_ms: int) -> bool:
        """Replace a token's digest. The old digest remains valid for `grace_ms`.

        Return False if the token has changed. Raises ErasureUnderWay.
        """
        await self.require_none_erased(token)
        rotated = await self._rotate(
            names=self._keys.tokens,
            new_token=self._keys.token(digest),
            old_token=self._keys.token(token.digest),
            id=token.id,
            new_digest=digest,
            old_digest=token.digest,
            grace_ms=grace_ms,
        )
        return bool(rotated)

    async def require_none_erased(self, token: Token) -> None:
        erasures = self._erasures_of(token.tenant)
        for user_id in token.users or ():
            await erasures.require_none(token.tenant, None, user_id)
        for agent_id in token.agents or ():
            await erasures.require_none(token.tenant, None, None, agent_id)

    async def find_token(self, token_id: str) -> Token | None:
        digest = (await read(self._client, lambda pipe: pipe.hget(self._keys.tokens, token_id)))[0]
        if digest is None:
            return None
        fields = (await read(self._client, lambda pipe: pipe.hgetall(self._keys.token(digest.decode()))))[0]
        return _decode(digest.decode(), fields) if fields else None

    async def all_tokens(self) -> Sequence[Token]:
        """Return all tokens, oldest first, and delete the ids of expired ones."""
        names = (await read(self._client, lambda pipe: pipe.hgetall(self._keys.tokens)))[0]
        if not names:
            return []
        rows = await read(self._client, lambda pipe: [pipe.hgetall(self._keys.token(digest.decode())) for digest in names.values()])
        for (name, digest), fields in zip(names.items(), rows, strict=True):
            if not fields and not await self._remove(names=self._keys.tokens, tokens=(), id=name, digest=digest):
                return await self.all_tokens()  # The token was rotated or removed in the meantime.
        tokens = [_decode(digest.decode(), fields) for digest, fields in zip(names.values(), rows, strict=True) if fields]
        return sorted(tokens, key=lambda token: (token.created, token.id))

    async def remove_token(self, token: Token) -> bool:
        """Delete a token and its former secrets. Return False if the token has changed."""
        tokens = [self._keys.token(digest) for digest in (token.digest, *token.former)]
        return bool(await self._remove(names=self._keys.tokens, tokens=tokens, id=token.id, digest=token.digest))

    async def narrow(self, token: Token, limit: Literal["us", "ag"], names: frozenset[str]) -> bool:
        """Restrict a token to the users ("us") or agents ("ag") in `names`. Return False if the token has changed."""
        tokens = [self._keys.token(digest) for digest in (token.digest, *token.former)]
        narrowed = await self._narrow(
            names=self._keys.tokens,
            tokens=tokens,
            id=token.id,
            digest=token.digest,
            limit=limit,
            values=json.dumps(sorted(names), ensure_ascii=False),
        )
        return bool(narrowed)


def _decode(digest: str, fields: dict[bytes, bytes]) -> Token:
    def limit(name: bytes) -> frozenset[str] | None:
        return frozenset(json.loads(fields[name])) if name in fields else None

    def moment(name: bytes) -> int | None:
        return int(fields[name]) if name in fields else None

    def text(name: bytes) -> str | None:
        return fields[name].decode() if name in fields else None

    return Token(
        id=fields[b"id"].decode(),
        digest=digest,
        tenant=fields[b"tn"].decode(),
        role=Role(fields[b"ro"].decode()),
        description=fields[b"de"].decode(),
        created=int(fields[b"ca"]),
        expires=moment(b"ex"),
        used=moment(b"lu"),
        namespaces=limit(b"ns"),
        users=limit(b"us"),
        agents=limit(b"ag"),
        former=tuple(fields.get(b"pr", b"").decode().split()),
        parent=text(b"by"),
        client=text(b"cl"),
    )
