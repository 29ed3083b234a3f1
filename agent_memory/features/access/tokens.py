"""Create, list, rotate, revoke and validate API keys.

Processes trust a lookup for `LEASE_SECONDS`. A revocation waits that long before it returns.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from secrets import token_urlsafe
from time import monotonic
from types import SimpleNamespace
from typing import Literal

from agent_memory.features.access.token_store import Token, TokenStore
from agent_memory.foundation.core.errors import BadInput, Conflict, Forbidden, NotFound, Unauthenticated
from agent_memory.foundation.core.scope import DEFAULT_TENANT, Principal, Role
from agent_memory.foundation.core.settings import AuthSettings
from agent_memory_client.models import CreatedToken, CreateTokenRequest, RoleEnum, TokenInfo, new_id

PREFIX = "am_"
LEASE_SECONDS = 0.5
_MOST_CACHED = 10_000
_MAX_LIFETIME = timedelta(days=100 * 366)
OPERATOR = Principal(DEFAULT_TENANT, "admin-token", Role.ADMIN, operator=True)


class TokenGate:
    def __init__(self, settings: AuthSettings, store: TokenStore, clock: Callable[[], float] = monotonic) -> None:
        self._store = store
        self._clock = clock
        self._configured_secret = settings.secret.get_secret_value().encode() if settings.secret else b""
        self._secret = self._configured_secret
        self._admin = settings.admin_token.get_secret_value() if settings.admin_token else None
        self._trusted: dict[str, tuple[Principal, float]] = {}

    def renew(self) -> None:
        """Clear the secret and keys cached from the previous store."""
        self._secret = self._configured_secret
        self._trusted.clear()

    async def admit(self, credential: str) -> Principal:
        """Return the principal for a key. Raises Unauthenticated and RedisUnavailable."""
        return await self.admit_digest(await self.digest(credential))

    async def admit_digest(self, digest: str) -> Principal:
        """Return the principal for a key's digest. Raises Unauthenticated and RedisUnavailable."""
        trusted = self._trusted.get(digest)
        begun = self._clock()
        if trusted is not None and begun < trusted[1]:
            return trusted[0]
        if self._admin is not None and hmac.compare_digest(digest, await self.digest(self._admin)):
            return OPERATOR
        looked_up = await self._store.look_up(digest)
        if looked_up is None:
            self._trusted.pop(digest, None)
            raise Unauthenticated("unknown API key: it is wrong or was revoked")
        token, now = looked_up
        left = LEASE_SECONDS if token.expires is None else min(LEASE_SECONDS, (token.expires - now) / 1000)
        if left <= 0:
            self._trusted.pop(digest, None)
            raise Unauthenticated("this API key has expired: ask for a new one")
        until = begun + left
        if token.parent is not None:
            await self.admit_digest(token.parent)
            until = min(until, self._trusted.get(token.parent, (None, until))[1])
        principal = Principal(token.tenant, f"token:{token.id}", token.role, token.namespaces, token.users, token.agents)
        if len(self._trusted) >= _MOST_CACHED:
            self._trusted.clear()
        # The lease starts before the lookup, so it ends in time if the key is revoked during the lookup.
        self._trusted[digest] = (principal, until)
        return principal

    async def digests_of(self, caller: Principal) -> tuple[str, str | None]:
        """Return the digests of the caller's key and its parent. Raises Unauthenticated."""
        if caller.operator:
            return await self.digest(self._admin or ""), None
        token = await self._store.find_token(caller.subject.removeprefix("token:"))
        if token is None:
            raise Unauthenticated("unknown API key: it is wrong or was revoked")
        return token.digest, token.parent

    def recall_principal(self, credential: str) -> tuple[Principal, bool] | None:
        if self._admin is not None and hmac.compare_digest(credential, self._admin):
            return OPERATOR, True
        trusted = self._trusted.get(self._digest(credential)) if self._secret else None
        return None if trusted is None else (trusted[0], self._clock() < trusted[1])

    async def digest(self, credential: str) -> str:
        if not self._secret:
            self._secret = await self._store.secret()
        return self._digest(credential)

    def _digest(self, credential: str) -> str:
        return hmac.digest(self._secret, credential.encode(), "sha256").hex()

    def forget(self) -> None:
        self._trusted.clear()


class TokenService:
    def __init__(self, store: TokenStore, gate: TokenGate) -> None:
        self._store = store
        self._gate = gate

    async def create(self, principal: Principal, body: CreateTokenRequest) -> CreatedToken:
        """Create a key. Raises Forbidden, BadInput, and Conflict if the requested secret is taken."""
        tenant = self._tenant(principal, body.tenant)
        secret = body.token or PREFIX + token_urlsafe(32)
        expires = body.expires_at
        if body.expires_days is not None:
            if expires is not None:
                raise BadInput("give expires_days or expires_at, not both", field="expires_at")
            expires = datetime.now(UTC) + timedelta(days=body.expires_days)
        life = timedelta(0) if expires is None else expires - datetime.now(UTC)
        if expires is not None and not timedelta(0) < life < _MAX_LIFETIME:
            raise BadInput("must be in the future, within 100 years", field="expires_at")
        token = Token(
            id=new_id(),
            digest=await self._gate.digest(secret),
            tenant=tenant,
            role=Role(body.role.value),
            description=body.description,
            created=0,
            namespaces=_limit(body.namespaces),
            users=_limit(body.users),
            agents=_limit(body.agents),
        )
        if await self._store.add_token(token, max(int(life.total_seconds() * 1000), 1) if expires else 0) is None:
            raise Conflict("another API key has this secret: send a different one, or omit it to let the server create one")
        return CreatedToken(token=secret, **(await self.show(principal, token.id)).model_dump())

    async def list(self, principal: Principal) -> Sequence[TokenInfo]:
        """Return the keys that the caller may manage, oldest first. Raises Forbidden."""
        return [token_info(token) for token in await self._visible_tokens(principal)]

    async def show(self, principal: Principal, name: str) -> TokenInfo:
        """Return a key by its id, hash, or hash prefix (at least four characters).

        Raises Forbidden, NotFound, and Conflict if the prefix is ambiguous.
        """
        return token_info(await self._token(principal, name))

    async def remove(self, principal: Principal, name: str) -> None:
        """Revoke a key. Once this method returns, no process accepts the key.

        Raises Conflict if the key has changed, and the same errors as `show`.
        """
        if not await self._store.remove_token(await self._token(principal, name)):
            raise Conflict("this key was rotated or revoked in the meantime: read it again")
        await self._settled()

    async def rotate(self, principal: Principal, name: str, grace_seconds: float) -> CreatedToken:
        """Replace a key's secret. The old secret remains valid for `grace_seconds`.

        Raises Conflict if the key has changed, and the same errors as `show`.
        """
        token = await self._token(principal, name)
        secret = PREFIX + token_urlsafe(32)
        if not await self._store.replace_secret(token, await self._gate.digest(secret), int(grace_seconds * 1000)):
            raise Conflict("this key was rotated or revoked in the meantime: read it again")
        if grace_seconds < LEASE_SECONDS:
            await self._settled()
        return CreatedToken(token=secret, **(await self.show(principal, token.id)).model_dump())

    async def forget_user(self, tenant: str, user_id: str) -> int:
        """Remove a user from all keys, and revoke keys restricted to this user alone.

        Return the number of affected keys.
        """
        return await self._forget_name(tenant, "us", user_id)

    async def forget_agent(self, tenant: str, agent_id: str) -> int:
        """Remove an agent from all keys, and revoke keys restricted to this agent alone.

        Return the number of affected keys.
        """
        return await self._forget_name(tenant, "ag", agent_id)

    async def _forget_name(self, tenant: str, limit: Literal["us", "ag"], name: str) -> int:
        touched: set[str] = set()
        while named := [token for token in await self._store.all_tokens() if token.tenant == tenant and name in _names(token, limit)]:
            for token in named:
                rest = _names(token, limit) - {name}
                if await (self._store.narrow(token, limit, rest) if rest else self._store.remove_token(token)):
                    touched.add(token.id)
        if touched:
            await self._settled()
        return len(touched)

    async def _settled(self) -> None:
        """Wait until earlier lookups have expired in every process."""
        self._gate.forget()
        await asyncio.sleep(LEASE_SECONDS)

    def _tenant(self, principal: Principal, tenant: str | None) -> str:
        _require_admin(principal)
        if tenant is None or tenant == principal.tenant:
            return principal.tenant
        if not principal.operator:
            raise Forbidden("these credentials can create keys only for their own tenant: use AUTH_ADMIN_TOKEN", field="tenant")
        return tenant

    async def _visible_tokens(self, principal: Principal) -> list[Token]:
        _require_admin(principal)
        return [token for token in await self._store.all_tokens() if principal.operator or token.tenant == principal.tenant]

    async def _token(self, principal: Principal, name: str) -> Token:
        _require_admin(principal)
        exact = await self._store.find_token(name)
        if exact is not None and (principal.operator or exact.tenant == principal.tenant):
            return exact
        matches = [token for token in await self._visible_tokens(principal) if len(name) >= 4 and token.digest.startswith(name)]
        if not matches:
            raise NotFound("API key not found", field="token_id", hint="`agent-memory token list` or GET /v1/auth/tokens lists all")
        if len(matches) > 1:
            raise Conflict(f"{len(matches)} API keys begin with this: give more characters of the hash, or the id")
        return matches[0]


def token_info(token: Token) -> TokenInfo:
    return TokenInfo(
        id=token.id,
        hash=token.digest,
        tenant=token.tenant,
        role=RoleEnum(token.role.value),
        description=token.description,
        created_at=_moment(token.created),
        expires_at=None if token.expires is None else _moment(token.expires),
        last_used_at=None if token.used is None else _moment(token.used),
        namespaces=_sorted(token.namespaces),
        users=_sorted(token.users),
        agents=_sorted(token.agents),
    )


class OperatorTokens:
    """Gives CLI commands the same methods as the client's `Tokens`, without HTTP."""

    def __init__(self, service: TokenService) -> None:
        self.create, self.rotate = partial(service.create, OPERATOR), partial(service.rotate, OPERATOR)
        self.get, self.delete = partial(service.show, OPERATOR), partial(service.remove, OPERATOR)
        self._list = partial(service.list, OPERATOR)

    async def list(self) -> SimpleNamespace:
        return SimpleNamespace(tokens=[*await self._list()])


def _require_admin(principal: Principal) -> None:
    if principal.role is not Role.ADMIN:
        raise Forbidden("these credentials do not have the role admin: use others")
    if principal.namespaces is not None or principal.users is not None or principal.agents is not None:
        raise Forbidden("credentials that are limited to certain namespaces, users or agents cannot manage API keys: use others")


def _names(token: Token, limit: Literal["us", "ag"]) -> frozenset[str]:
    return (token.users if limit == "us" else token.agents) or frozenset()


def _limit(values: Sequence[str] | None) -> frozenset[str] | None:
    return None if values is None else frozenset(values)


def _sorted(limit: frozenset[str] | None) -> list[str] | None:
    return None if limit is None else sorted(limit)


def _moment(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)
