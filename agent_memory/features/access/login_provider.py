"""Log users in with the OpenID Connect authorization code flow and PKCE (RFC 7636)."""

from __future__ import annotations

import hmac
import json
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from functools import partial
from hashlib import sha256
from secrets import token_urlsafe
from time import time
from typing import Any
from urllib.parse import quote, unquote, urlencode

import httpx

from agent_memory.features.access import oauth
from agent_memory.foundation.core.errors import Forbidden, StartupError, Unauthenticated, Unavailable
from agent_memory.foundation.core.logs import get_logger
from agent_memory.foundation.core.scope import Principal
from agent_memory.foundation.core.settings import Settings

log = get_logger(__name__)

_INVALID = "the login provider's answer is not valid here: log in again"
# Browsers drop cookies larger than 4096 bytes.
_MOST_ADDRESS_BYTES = 2000


class LoginProvider:
    def __init__(self, settings: Settings, gate: oauth.JwtGate) -> None:
        if settings.server.public_url is None:
            raise StartupError("OAUTH2_CLIENT_ID needs PUBLIC_URL: the login provider sends browsers back to it")
        self._callback = f"{settings.server.public_url.rstrip('/')}/console/login/callback"
        self._settings = settings.auth
        self._client = settings.auth.oauth2_client_id or ""
        self._gate = gate
        self._urls = oauth.ProviderDocument(partial(oauth.fetch_urls, self._settings), partial(oauth.parse_urls, self._settings))

    async def start(self, next_page: str) -> tuple[str, str]:
        """Return the provider's login URL and a cookie for `finish`. Raises Unavailable."""
        state, nonce, verifier = (token_urlsafe(32) for _ in range(3))
        # If roles come from the token's scope, the console must ask for them.
        roles = self._settings.roles if self._settings.oauth2_claims.get("role") in ("scope", "scp") else ()
        query = {
            "response_type": "code",
            "client_id": self._client,
            "redirect_uri": self._callback,
            "scope": " ".join(["openid", *roles]),
            "state": state,
            "nonce": nonce,
            "code_challenge": urlsafe_b64encode(sha256(verifier.encode()).digest()).rstrip(b"=").decode(),
            "code_challenge_method": "S256",
        }
        if self._settings.oauth2_audience:
            query["audience"] = self._settings.oauth2_audience  # for Auth0 and Hydra; others ignore it
        url = str(await self._urls.entry("authorization_endpoint"))
        address = quote(next_page, safe="")
        cookie = ".".join((state, nonce, verifier, address if len(address) <= _MOST_ADDRESS_BYTES else ""))
        return f"{url}{'&' if '?' in url else '?'}{urlencode(query)}", cookie

    async def finish(self, cookie: str, answer: Mapping[str, str]) -> tuple[str, dict[str, Any], str]:
        """Verify the provider's response. Return the login state, the claims and the next page.

        Raises Unauthenticated, Forbidden and Unavailable.
        """
        state, nonce, verifier, address = (cookie.split(".", 3) + [""] * 4)[:4]
        if not (state and nonce and verifier) or not hmac.compare_digest(state.encode(), answer.get("state", "").encode()):
            raise Forbidden("this login is out of date: log in again")
        if answer.get("iss", self._settings.oauth2_issuer_url) != self._settings.oauth2_issuer_url:  # RFC 9207
            raise Unauthenticated(_INVALID)
        if "code" not in answer:
            raise Unauthenticated(f"the login provider refused this login: {answer.get('error', 'no code')[:100]}")
        id_token, access_token = await self._fetch_tokens(answer["code"], verifier)
        identity = await self._gate.claims(id_token, self._client)
        if identity.get("nonce") != nonce or identity.get("azp", self._client) != self._client:
            raise Unauthenticated(_INVALID)
        claims = await self._gate.claims(access_token, self._settings.oauth2_audience)
        self.principal_of(claims)
        used = {name: oauth.claim_at(claims, name) for name in ("sub", "exp", *self._settings.oauth2_claims.values())}
        return state, used, unquote(address)

    def principal_of(self, claims: Mapping[str, Any]) -> Principal:
        """Return the permissions that the claims grant. Raises Forbidden and Unauthenticated."""
        if time() >= int(claims["exp"]):
            raise Unauthenticated("this login has ended: log in again")
        return oauth.principal_of_claims(self._settings, claims)

    async def _fetch_tokens(self, code: str, verifier: str) -> tuple[str, str]:
        form = {"grant_type": "authorization_code", "code": code, "redirect_uri": self._callback, "code_verifier": verifier}
        auth, secret = None, self._settings.oauth2_client_secret
        if secret is None:
            form["client_id"] = self._client
        else:
            auth = (quote(self._client, safe=""), quote(secret.get_secret_value(), safe=""))
        try:
            tokens = json.loads(await oauth.fetch(str(await self._urls.entry("token_endpoint")), form, auth))
            return str(tokens["id_token"]), str(tokens["access_token"])
        except (httpx.HTTPError, TimeoutError, ValueError, KeyError, TypeError) as error:
            reason = str(error).partition("\n")[0][:200]
            log.warning("login provider sent no tokens", error_type=type(error).__name__, error=reason)
            if isinstance(error, httpx.HTTPStatusError) and error.response.is_client_error:
                raise Unauthenticated(_INVALID) from None
            raise Unavailable("the login provider does not answer: try again") from None
