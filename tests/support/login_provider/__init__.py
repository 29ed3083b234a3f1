"""A fake OpenID Connect provider whose user is always logged in."""

from __future__ import annotations

import time
from base64 import b64decode, urlsafe_b64encode
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from secrets import token_urlsafe
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from fastapi import FastAPI, Request
from jwt.algorithms import RSAAlgorithm
from starlette.responses import JSONResponse, RedirectResponse, Response

from agent_memory.foundation.core.settings import load_settings
from tests.support.api import serving

AUDIENCE, CLIENT = "agent-memory", "the-console"
_KEY = rsa.generate_private_key(65537, 2048)


@dataclass
class LoginProvider:
    """A login provider. `identity` and `access` override token claims, where None omits a claim.

    `answer` adds parameters to the redirect.
    """

    issuer: str = ""
    public_url: str = ""
    secret: str | None = None
    key: rsa.RSAPrivateKey = _KEY
    discovery: dict[str, Any] = field(default_factory=dict[str, Any])
    identity: dict[str, Any] = field(default_factory=dict[str, Any])
    access: dict[str, Any] = field(default_factory=dict[str, Any])
    answer: dict[str, str] = field(default_factory=dict[str, str])
    token_status: int = 200
    logins: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    """The parameters of each login, by its code. A code remains valid, so that the console itself must refuse to use it twice."""
    redeemed: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    """The forms sent to the token endpoint."""
    tokens: list[str] = field(default_factory=list[str])

    @property
    def settings(self) -> dict[str, Any]:
        """Return the settings of a server that trusts this provider."""
        given = {"AUTH_MODE": "oauth2", "OAUTH2_ISSUER_URL": self.issuer, "OAUTH2_AUDIENCE": AUDIENCE, "OAUTH2_CLIENT_ID": CLIENT}
        return given | {
            "PUBLIC_URL": self.public_url,
            "OAUTH2_CLAIMS": {"user": "sub", "role": "scope"},
            "OAUTH2_CLIENT_SECRET": self.secret,
        }

    def authorize(self, asked: dict[str, str]) -> Response:
        if (asked["client_id"], asked["response_type"], asked["code_challenge_method"]) != (CLIENT, "code", "S256"):
            return Response("not a login of the console", 400)
        code = token_urlsafe(16)
        self.logins[code] = asked
        answer = {"code": code, "state": asked["state"], "iss": self.issuer} | self.answer
        return RedirectResponse(f"{asked['redirect_uri']}?{urlencode({name: value for name, value in answer.items() if value})}", 302)

    def redeem(self, form: dict[str, str], authorization: str) -> Response:
        self.redeemed.append(form)
        login = self.logins.get(form.get("code", ""))
        challenge = urlsafe_b64encode(sha256(form.get("code_verifier", "").encode()).digest()).rstrip(b"=").decode()
        if self.secret is None:
            client = form.get("client_id")
        else:
            client, _, secret = b64decode(authorization.removeprefix("Basic ")).decode().partition(":")
            client = client if unquote(secret) == self.secret and "client_id" not in form else None
        if self.token_status != 200 or client != CLIENT:
            return JSONResponse({"error": "invalid_client"}, 401 if self.token_status == 200 else self.token_status)
        if login is None or challenge != login["code_challenge"] or form.get("redirect_uri") != login["redirect_uri"]:
            return JSONResponse({"error": "invalid_grant"}, 400)
        identity = self.sign({"aud": CLIENT, "nonce": login["nonce"]} | self.identity)
        access = self.sign({"aud": AUDIENCE, "scope": "openid memory:read memory:admin"} | self.access)
        self.tokens += [identity, access]
        return JSONResponse({"token_type": "Bearer", "id_token": identity, "access_token": access})

    def sign(self, claims: dict[str, Any]) -> str:
        now = int(time.time())
        made = {"iss": self.issuer, "sub": "ana", "iat": now, "exp": now + 300} | claims
        return jwt.encode({name: value for name, value in made.items() if value is not None}, self.key, "RS256", {"kid": "k1"})

    def describe(self) -> dict[str, Any]:
        paths = {"authorization_endpoint": "authorize", "token_endpoint": "token", "jwks_uri": "keys"}
        return {"issuer": self.issuer, **{name: f"{self.issuer}/{path}" for name, path in paths.items()}} | self.discovery


@asynccontextmanager
async def login_provider(host: str = "127.0.0.1", **given: Any) -> AsyncGenerator[LoginProvider]:
    """Serve a provider. Use a different `host` to make it cross-site for the console."""
    provider = LoginProvider(**given)
    app = FastAPI()
    app.state.settings = load_settings()

    @app.get("/.well-known/openid-configuration")
    async def discovery() -> dict[str, Any]:
        return provider.describe()

    @app.get("/keys")
    async def keys() -> dict[str, Any]:
        return {"keys": [RSAAlgorithm.to_jwk(_KEY.public_key(), as_dict=True) | {"kid": "k1"}]}

    @app.get("/authorize")
    async def authorize(request: Request) -> Response:
        return provider.authorize(dict(request.query_params))

    @app.post("/token")
    async def token(request: Request) -> Response:
        body = (await request.body()).decode()
        return provider.redeem(dict(parse_qsl(body)), request.headers.get("authorization", ""))

    async with serving(app) as url:
        provider.issuer = url.replace("127.0.0.1", host)
        yield provider
