"""Validate JSON Web Tokens from an OpenID Connect provider, following RFC 8725.

The settings, not the tokens, determine the algorithms.
"""

from __future__ import annotations

import asyncio
import hmac
import json
from collections.abc import Awaitable, Callable, Mapping
from hashlib import sha256
from time import monotonic, time
from typing import Any, Generic, TypeVar, cast

import httpx
import jwt

from agent_memory.features.access.tokens import OPERATOR
from agent_memory.foundation.core.errors import Forbidden, StartupError, Unauthenticated, Unavailable
from agent_memory.foundation.core.logs import get_logger
from agent_memory.foundation.core.scope import DEFAULT_TENANT, Principal, Role
from agent_memory.foundation.core.settings import AuthSettings

log = get_logger(__name__)

# Only algorithms with public keys: with a shared secret, everyone who can check a token could create one.
ALGORITHMS = frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"})
REFRESH_SECONDS = 60.0
_KEEP_SECONDS = 3600.0
_FETCH_SECONDS = 5.0
_MOST_BYTES = 1024 * 1024
_TRUST_SECONDS = 60.0
_MOST_CACHED = 10_000
_REQUIRED = ["exp", "iat", "sub"]

Fetch = Callable[[], Awaitable[bytes]]
Entry = TypeVar("Entry")


class ProviderDocument(Generic[Entry]):
    """Fetches a document from the login provider and caches its entries. `parse` may raise ValueError."""

    def __init__(self, fetch: Fetch, parse: Callable[[bytes], dict[str, Entry]], clock: Callable[[], float] = monotonic) -> None:
        self._fetch = fetch
        self._parse = parse
        self._clock = clock
        self._entries: dict[str, Entry] = {}
        self._fetched = float("-inf")
        self._tried = float("-inf")
        self._lock = asyncio.Lock()
        self.generation = 0

    async def entry(self, name: str) -> Entry | None:
        """Return an entry, or None. Raises Unavailable if the document cannot be fetched."""
        now = self._clock()
        if name not in self._entries or now - self._fetched > _KEEP_SECONDS:
            await self._refresh(now)
        if not self._entries:
            left = REFRESH_SECONDS - (self._clock() - self._tried)
            raise Unavailable("the login provider does not answer: try again", retry_after=max(int(left) + 1, 1))
        return self._entries.get(name)

    async def _refresh(self, requested_at: float) -> None:
        async with self._lock:
            # Another task has just tried to fetch the document.
            if self._tried >= requested_at or self._clock() - self._tried < REFRESH_SECONDS:
                return
            self._tried = self._clock()
            try:
                self._entries = self._parse(await self._fetch())
            except (httpx.HTTPError, TimeoutError, ValueError, jwt.PyJWTError) as error:
                log.warning("cannot load the login provider's keys or URLs", error_type=type(error).__name__, error=str(error)[:200])
                return
            self._fetched = self._tried
            self.generation += 1


class JwtGate:
    def __init__(self, settings: AuthSettings, keys: ProviderDocument[jwt.PyJWK]) -> None:
        check_oauth(settings)
        self._settings = settings
        self._keys = keys
        self._admin = settings.admin_token.get_secret_value() if settings.admin_token else None
        self._trusted: dict[bytes, tuple[Principal, float, int]] = {}

    async def admit(self, credential: str) -> Principal:
        """Return the token's principal. Raises Unauthenticated, Forbidden and Unavailable."""
        if self._admin is not None and hmac.compare_digest(credential, self._admin):
            return OPERATOR
        name = sha256(credential.encode()).digest()
        trusted = self._trusted.get(name)
        if trusted is not None and time() < trusted[1] and trusted[2] == self._keys.generation:
            return trusted[0]
        claims = await self.claims(credential, self._settings.oauth2_audience)
        principal = principal_of_claims(self._settings, claims)
        if len(self._trusted) >= _MOST_CACHED:
            self._trusted.clear()
        self._trusted[name] = (principal, min(float(claims["exp"]), time() + _TRUST_SECONDS), self._keys.generation)
        return principal

    def recall_principal(self, credential: str) -> tuple[Principal, bool] | None:
        if self._admin is not None and hmac.compare_digest(credential, self._admin):
            return OPERATOR, True
        trusted = self._trusted.get(sha256(credential.encode()).digest())
        return None if trusted is None else (trusted[0], time() < trusted[1] and trusted[2] == self._keys.generation)

    async def claims(self, credential: str, audience: str | None) -> dict[str, Any]:
        """Return a token's claims. If `audience` is None, accept any. Raises Unauthenticated and Unavailable."""
        settings = self._settings
        try:
            header = jwt.get_unverified_header(credential)
            kid, algorithm = header.get("kid"), header.get("alg")
            if algorithm not in settings.oauth2_algorithms or not isinstance(kid, str) or "crit" in header:
                raise Unauthenticated("this token is signed in a way that is not accepted here: see OAUTH2_ALGORITHMS")
            key = await self._keys.entry(kid)
            # The key decides the algorithm, not the token's header.
            if key is None or key.algorithm_name not in settings.oauth2_algorithms:
                raise Unauthenticated("this token is signed with a key that the login provider does not have: log in again")
            claims = jwt.decode(
                credential,
                key,
                algorithms=[key.algorithm_name] if key.algorithm_name == algorithm else [],
                audience=audience,
                issuer=settings.oauth2_issuer_url,
                leeway=settings.oauth2_leeway_seconds,
                options={"require": _REQUIRED, "verify_aud": audience is not None},
            )
            # Raises an error for lone surrogates, which no valid name contains.
            json.dumps(claims, ensure_ascii=False).encode()
            return claims
        except jwt.ExpiredSignatureError:
            raise Unauthenticated("this token has expired: log in again") from None
        except (jwt.PyJWTError, ValueError, TypeError, KeyError, OverflowError, RecursionError):
            # Do not tell callers which check failed, because they may be guessing tokens.
            raise Unauthenticated("this token is not valid here: log in again at this server's login provider") from None


def principal_of_claims(settings: AuthSettings, claims: Mapping[str, Any]) -> Principal:
    """Return the principal that the claims describe. Raises Unauthenticated and Forbidden."""
    tenant = _claim_text(claims, path) if (path := settings.oauth2_claims.get("tenant")) else DEFAULT_TENANT
    users = frozenset({_claim_text(claims, path)}) if (path := settings.oauth2_claims.get("user")) else None
    namespaces = frozenset(_claim_texts(claims, path)) if (path := settings.oauth2_claims.get("namespace")) else None
    agents = frozenset(_claim_texts(claims, path)) if (path := settings.oauth2_claims.get("agent")) else None
    return Principal(tenant, f"jwt:{claims['sub']}", _role(settings, claims), namespaces, users, agents)


def _role(settings: AuthSettings, claims: Mapping[str, Any]) -> Role:
    path = settings.oauth2_claims.get("role")
    if not path:
        return Role(settings.default_role)
    claim = claim_at(claims, path)
    listed: Any = claim.split() if isinstance(claim, str) else [] if claim is None else claim
    words = [word for word in cast("list[Any]", listed) if isinstance(word, str)] if isinstance(listed, list) else []
    if not isinstance(listed, list) or len(words) != len(cast("list[Any]", listed)):
        raise Unauthenticated(f"the claim {path} of this token is neither a text nor a list of texts")
    roles = [settings.roles[word] for word in words if word in settings.roles]
    if not roles:
        raise Forbidden("this token has no role here: ask for one of " + ", ".join(sorted(settings.roles)))
    return max((Role(role) for role in roles), key=list(Role).index)


def claim_at(claims: Mapping[str, Any], path: str) -> Any:
    """Return a claim by its full name or dotted path, or None."""
    if path in claims:
        return claims[path]
    value: Any = claims
    for part in path.split("."):
        value = cast("Mapping[str, Any]", value).get(part) if isinstance(value, Mapping) else None
    return value


def _claim_text(claims: Mapping[str, Any], path: str) -> str:
    value = claim_at(claims, path)
    if not isinstance(value, str) or not value.strip():
        raise Unauthenticated(f"this token lacks the claim {path}: let the login provider add it")
    return value


def _claim_texts(claims: Mapping[str, Any], path: str) -> list[str]:
    value = claim_at(claims, path)
    values = [value] if isinstance(value, str) else cast("list[Any]", value) if isinstance(value, list) else []
    words = [word for word in values if isinstance(word, str) and word.strip()]
    if not words or len(words) != len(values):
        raise Unauthenticated(f"this token lacks the claim {path}: let the login provider add it")
    return words


def check_oauth(settings: AuthSettings) -> None:
    """Raise StartupError if the server cannot validate tokens with these settings."""
    if not settings.oauth2_issuer_url:
        raise StartupError(f"AUTH_MODE={settings.mode} needs OAUTH2_ISSUER_URL, the `iss` of the tokens")
    wrong = set(settings.oauth2_algorithms) - ALGORITHMS
    if wrong or not settings.oauth2_algorithms:
        raise StartupError(f"setting OAUTH2_ALGORITHMS: give some of {', '.join(sorted(ALGORITHMS))}, as a JSON list")
    if settings.oauth2_audience is None:
        log.warning("server also accepts tokens for other services of this login provider", hint="set OAUTH2_AUDIENCE")


async def fetch(url: str, form: Mapping[str, str] | None = None, auth: tuple[str, str] | None = None) -> bytes:
    """Fetch a login provider URL and return the response body. Use POST if `form` is given.

    Raises httpx.HTTPError, TimeoutError and ValueError.
    """
    async with (
        asyncio.timeout(_FETCH_SECONDS),
        httpx.AsyncClient(timeout=_FETCH_SECONDS, follow_redirects=False, auth=auth) as client,
        client.stream("POST" if form else "GET", url, data=form, headers={"Accept": "application/json"}) as answer,
    ):
        answer.raise_for_status()
        body = b""
        async for chunk in answer.aiter_bytes():
            body += chunk
            if len(body) > _MOST_BYTES:
                raise ValueError("too large")
        return body


def well_known(settings: AuthSettings, document: str) -> str:
    return f"{(settings.oauth2_issuer_url or '').rstrip('/')}/.well-known/{document}"


async def fetch_urls(settings: AuthSettings) -> bytes:
    return await fetch(well_known(settings, "openid-configuration"))


async def fetch_keys(settings: AuthSettings) -> bytes:
    url = settings.oauth2_jwks_url
    if url is None and settings.oauth2_client_id is None:
        # The archived server's default. Not every token issuer has a discovery document.
        url = well_known(settings, "jwks.json")
    return await fetch(url or parse_urls(settings, await fetch_urls(settings))["jwks_uri"])


def parse_urls(settings: AuthSettings, raw: bytes) -> dict[str, str]:
    """Return the provider's URLs, keyed by OpenID Connect Discovery name. Raises ValueError."""
    document, issuer = json.loads(raw), settings.oauth2_issuer_url or ""
    if not isinstance(document, dict) or cast("dict[str, Any]", document).get("issuer") != issuer:
        raise ValueError("not the configuration of OAUTH2_ISSUER_URL")
    urls = {name: str(cast("dict[str, Any]", document).get(name)) for name in ("authorization_endpoint", "token_endpoint", "jwks_uri")}
    # If the provider uses TLS, never send codes or fetch keys without TLS.
    schemes = ("https://", f"{issuer.partition(':')[0]}://")
    if unusable := [name for name, url in urls.items() if not url.startswith(schemes)]:
        raise ValueError(f"missing or insecure: {', '.join(unusable)}")
    return urls


def parse_keys(raw: bytes) -> dict[str, jwt.PyJWK]:
    """Return the usable signing keys, keyed by `kid`. Raises ValueError if there are none."""
    listed = json.loads(raw)
    if not isinstance(listed, dict) or not isinstance(cast("dict[str, Any]", listed).get("keys"), list):
        raise ValueError("not a JSON Web Key Set")
    keys: dict[str, jwt.PyJWK] = {}
    for entry in cast("dict[str, list[Any]]", listed)["keys"]:
        if not isinstance(entry, dict):
            continue
        jwk = cast("dict[str, Any]", entry)
        if jwk.get("use", "sig") != "sig" or jwk.get("kty") == "oct" or not isinstance(jwk.get("kid"), str):
            continue
        try:
            keys[jwk["kid"]] = jwt.PyJWK(jwk)
        except jwt.PyJWTError:
            continue
    if not keys:
        raise ValueError("no key that can be used")
    return keys
