"""Validate JSON Web Tokens from an OAuth 2 / OpenID Connect provider, following RFC 8725.

The settings, not the tokens, determine the algorithms. This module checks issuer, audience and times.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from hashlib import sha256
from time import monotonic, time
from typing import Any, cast

import httpx
import jwt

from agent_memory.features.access.tokens import OPERATOR
from agent_memory.foundation.core.errors import Forbidden, StartupError, Unauthenticated, Unavailable
from agent_memory.foundation.core.scope import DEFAULT_TENANT, Principal, Role
from agent_memory.foundation.core.settings import AuthSettings

log = logging.getLogger(__name__)

# Only algorithms with public keys: with a shared secret, everyone who can check a token could create one.
ALGORITHMS = frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"})
REFRESH_SECONDS = 60.0
_KEEP_KEYS_SECONDS = 3600.0
_FETCH_SECONDS = 5.0
_MOST_KEY_BYTES = 1024 * 1024
_TRUST_SECONDS = 60.0
_MOST_CACHED = 10_000
_REQUIRED = ["exp", "iat", "sub"]

Fetch = Callable[[], Awaitable[bytes]]


class KeySet:
    """Fetches the provider's public keys, and caches them by `kid`."""

    def __init__(self, fetch: Fetch, clock: Callable[[], float] = monotonic) -> None:
        self._fetch = fetch
        self._clock = clock
        self._keys: dict[str, jwt.PyJWK] = {}
        self._fetched = float("-inf")
        self._tried = float("-inf")
        self._lock = asyncio.Lock()
        self.generation = 0

    async def key(self, kid: str) -> jwt.PyJWK | None:
        """Return a key, or None if the provider does not have it. Raises Unavailable if the keys cannot be fetched."""
        now = self._clock()
        if kid not in self._keys or now - self._fetched > _KEEP_KEYS_SECONDS:
            await self._refresh(now)
        if not self._keys:
            left = REFRESH_SECONDS - (self._clock() - self._tried)
            raise Unavailable("the login provider's keys cannot be had: try again", retry_after=max(int(left) + 1, 1))
        return self._keys.get(kid)

    async def _refresh(self, requested_at: float) -> None:
        async with self._lock:
            # Another task has just tried to fetch the keys.
            if self._tried >= requested_at or self._clock() - self._tried < REFRESH_SECONDS:
                return
            self._tried = self._clock()
            try:
                self._keys = _parse_keys(await self._fetch())
            except (httpx.HTTPError, TimeoutError, ValueError, jwt.PyJWTError) as error:
                log.warning("cannot load the login provider's keys: %s: %s", type(error).__name__, str(error)[:200])
                return
            self._fetched = self._tried
            self.generation += 1


class JwtGate:
    def __init__(self, settings: AuthSettings, keys: KeySet) -> None:
        check_oauth(settings)
        self._settings = settings
        self._keys = keys
        self._admin = settings.admin_token.get_secret_value() if settings.admin_token else None
        self._trusted: dict[bytes, tuple[Principal, float, int]] = {}

    async def admit(self, credential: str) -> Principal:
        """Return the token's principal.

        Raises Unauthenticated, Forbidden if the token has no role, and Unavailable if the keys cannot be fetched.
        """
        recalled = self.recall_principal(credential)
        if recalled is not None and recalled[1]:
            return recalled[0]
        claims = await self._claims(credential)
        principal = principal_of_claims(self._settings, claims)
        if len(self._trusted) >= _MOST_CACHED:
            self._trusted.clear()
        until = min(float(claims["exp"]), time() + _TRUST_SECONDS)
        self._trusted[sha256(credential.encode()).digest()] = (principal, until, self._keys.generation)
        return principal

    def recall_principal(self, credential: str) -> tuple[Principal, bool] | None:
        if self._admin is not None and hmac.compare_digest(credential, self._admin):
            return OPERATOR, True
        trusted = self._trusted.get(sha256(credential.encode()).digest())
        return None if trusted is None else (trusted[0], time() < trusted[1] and trusted[2] == self._keys.generation)

    async def _claims(self, credential: str) -> dict[str, Any]:
        settings = self._settings
        try:
            header = jwt.get_unverified_header(credential)
            kid, algorithm = header.get("kid"), header.get("alg")
            if algorithm not in settings.oauth2_algorithms or not isinstance(kid, str) or "crit" in header:
                raise Unauthenticated("this token is signed in a way that is not accepted here")
            key = await self._keys.key(kid)
            # The key decides the algorithm, not the token's header.
            if key is None or key.algorithm_name not in settings.oauth2_algorithms:
                raise Unauthenticated("this token is signed with a key that the login provider does not have")
            claims = jwt.decode(
                credential,
                key,
                algorithms=[key.algorithm_name] if key.algorithm_name == algorithm else [],
                audience=settings.oauth2_audience,
                issuer=settings.oauth2_issuer_url,
                leeway=settings.oauth2_leeway_seconds,
                options={"require": _REQUIRED, "verify_aud": settings.oauth2_audience is not None},
            )
            # Raises an error for lone surrogates, which no valid name contains.
            json.dumps(claims, ensure_ascii=False).encode()
            return claims
        except jwt.ExpiredSignatureError:
            raise Unauthenticated("this token has expired: log in again") from None
        except (jwt.PyJWTError, ValueError, TypeError, KeyError, OverflowError, RecursionError):
            # Do not tell callers which check failed, because they may be guessing tokens.
            raise Unauthenticated("this token is not valid here") from None


def principal_of_claims(settings: AuthSettings, claims: Mapping[str, Any]) -> Principal:
    """Return the principal that the claims describe.

    Raises Unauthenticated if a claim is missing, and Forbidden if the claims contain no known role.
    """
    tenant = _claim_text(claims, path) if (path := settings.oauth2_claims.get("tenant")) else DEFAULT_TENANT
    users = frozenset({_claim_text(claims, path)}) if (path := settings.oauth2_claims.get("user")) else None
    namespaces = frozenset(_claim_texts(claims, path)) if (path := settings.oauth2_claims.get("namespace")) else None
    agents = frozenset(_claim_texts(claims, path)) if (path := settings.oauth2_claims.get("agent")) else None
    return Principal(tenant, f"jwt:{claims['sub']}", _role(settings, claims), namespaces, users, agents)


def _role(settings: AuthSettings, claims: Mapping[str, Any]) -> Role:
    """Return the highest role in the role claim.

    Raises Unauthenticated if the claim is malformed, and Forbidden if it contains no known role.
    """
    path = settings.oauth2_claims.get("role")
    if not path:
        return Role(settings.default_role)
    claim = _at(claims, path)
    listed: Any = claim.split() if isinstance(claim, str) else [] if claim is None else claim
    words = [word for word in cast("list[Any]", listed) if isinstance(word, str)] if isinstance(listed, list) else []
    if not isinstance(listed, list) or len(words) != len(cast("list[Any]", listed)):
        raise Unauthenticated(f"the claim {path} of this token is neither a text nor a list of texts")
    roles = [settings.roles[word] for word in words if word in settings.roles]
    if not roles:
        raise Forbidden("this token has no role here: ask for one of " + ", ".join(sorted(settings.roles)))
    return max((Role(role) for role in roles), key=list(Role).index)


def _at(claims: Mapping[str, Any], path: str) -> Any:
    """Return a claim by its full name, which may be a URL, or by its dotted path. Return None if it is missing."""
    if path in claims:
        return claims[path]
    value: Any = claims
    for part in path.split("."):
        value = cast("Mapping[str, Any]", value).get(part) if isinstance(value, Mapping) else None
    return value


def _claim_text(claims: Mapping[str, Any], path: str) -> str:
    value = _at(claims, path)
    if not isinstance(value, str) or not value.strip():
        raise Unauthenticated(f"this token lacks the claim {path}")
    return value


def _claim_texts(claims: Mapping[str, Any], path: str) -> list[str]:
    value = _at(claims, path)
    values = [value] if isinstance(value, str) else cast("list[Any]", value) if isinstance(value, list) else []
    words = [word for word in values if isinstance(word, str) and word.strip()]
    if not words or len(words) != len(values):
        raise Unauthenticated(f"this token lacks the claim {path}")
    return words


def check_oauth(settings: AuthSettings) -> None:
    """Raise StartupError if these settings do not allow the server to validate tokens."""
    if not settings.oauth2_issuer_url:
        raise StartupError("AUTH_MODE=oauth2 needs OAUTH2_ISSUER_URL, the `iss` of the tokens")
    wrong = set(settings.oauth2_algorithms) - ALGORITHMS
    if wrong or not settings.oauth2_algorithms:
        raise StartupError(f"setting OAUTH2_ALGORITHMS: give some of {', '.join(sorted(ALGORITHMS))}, as a JSON list")
    if settings.oauth2_audience is None:
        log.warning("OAUTH2_AUDIENCE is not set: the server also accepts tokens for other services of this provider")


def jwks_url(settings: AuthSettings) -> str:
    return settings.oauth2_jwks_url or f"{(settings.oauth2_issuer_url or '').rstrip('/')}/.well-known/jwks.json"


def fetching(settings: AuthSettings) -> Fetch:
    """Return a function that fetches the keys. It follows no redirects, and fails after five seconds or one megabyte."""
    url = jwks_url(settings)

    async def fetch() -> bytes:
        async with (
            asyncio.timeout(_FETCH_SECONDS),
            httpx.AsyncClient(timeout=_FETCH_SECONDS, follow_redirects=False) as client,
            client.stream("GET", url, headers={"Accept": "application/json"}) as answer,
        ):
            if answer.status_code != 200:
                raise ValueError(f"status {answer.status_code}")
            body = b""
            async for chunk in answer.aiter_bytes():
                body += chunk
                if len(body) > _MOST_KEY_BYTES:
                    raise ValueError("too large")
            return body

    return fetch


def _parse_keys(raw: bytes) -> dict[str, jwt.PyJWK]:
    """Return the usable signature keys by `kid`. Raises ValueError or PyJWTError if no key is usable."""
    listed: Any = json.loads(raw)
    if not isinstance(listed, dict):
        raise ValueError("not a JSON Web Key Set")
    usable = [key for key in jwt.PyJWKSet.from_dict(listed) if key.key_type != "oct" and key.public_key_use in (None, "sig")]
    keys = {key.key_id: key for key in usable if isinstance(key.key_id, str)}
    if not keys:
        raise ValueError("no key that can be used")
    return keys
