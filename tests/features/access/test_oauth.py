"""Test how JSON Web Tokens become principals, and every known way to forge one (row S4)."""

from __future__ import annotations

import base64
import contextlib
import json
import time
from collections.abc import AsyncGenerator
from typing import Any

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import ECAlgorithm, RSAAlgorithm
from mcp.client.auth.utils import extract_resource_metadata_from_www_auth
from mcp.shared.auth import ProtectedResourceMetadata
from mcp.shared.auth_utils import check_resource_allowed

from agent_memory.features.access.oauth import JwtGate, ProviderDocument, fetch_keys, parse_keys
from agent_memory.foundation.core.errors import Forbidden, StartupError, Unauthenticated, Unavailable
from agent_memory.foundation.core.scope import Principal, Role
from agent_memory.foundation.core.settings import AuthSettings, load_settings
from agent_memory.interfaces.http.app import create_app
from agent_memory.runtime import open_runtime

ISSUER, AUDIENCE = "https://login.example/", "agent-memory"
KEY = rsa.generate_private_key(65537, 2048)
STRANGER = rsa.generate_private_key(65537, 2048)
CURVE = ec.generate_private_key(ec.SECP256R1())
PUBLIC_PEM = KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def _jwks(**more: Any) -> bytes:
    first = RSAAlgorithm.to_jwk(KEY.public_key(), as_dict=True) | {"kid": "k1", "use": "sig"}
    curve = ECAlgorithm.to_jwk(CURVE.public_key(), as_dict=True) | {"kid": "curve", "use": "sig"}
    secret = {"kty": "oct", "kid": "secret", "k": base64.urlsafe_b64encode(b"0123456789abcdef0123456789abcdef").decode()}
    others = [{"kty": "RSA"}, {"kty": "what", "kid": "?"}, "text", None]
    return json.dumps({"keys": [first, curve, secret, *others], **more}).encode()


class Provider:
    """A fake login provider that returns its keys or fails."""

    def __init__(self) -> None:
        self.answer: bytes | Exception = _jwks()
        self.fetches = 0
        self.now = 1000.0

    async def fetch(self) -> bytes:
        self.fetches += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def gate(self, **settings: Any) -> JwtGate:
        given = {"AUTH_MODE": "oauth2", "OAUTH2_ISSUER_URL": ISSUER, "OAUTH2_AUDIENCE": AUDIENCE} | settings
        return JwtGate(load_settings(**given).auth, ProviderDocument(self.fetch, parse_keys, lambda: self.now))


@pytest.fixture
def provider() -> Provider:
    return Provider()


def claims(**more: Any) -> dict[str, Any]:
    now = int(time.time())
    made = {"iss": ISSUER, "aud": AUDIENCE, "sub": "ana", "iat": now, "nbf": now, "exp": now + 300} | more
    return {name: value for name, value in made.items() if value is not None}


def signed(body: dict[str, Any], key: Any = KEY, algorithm: str = "RS256", kid: str | None = "k1", **header: Any) -> str:
    return jwt.encode(body, key, algorithm, headers=({} if kid is None else {"kid": kid}) | header)


def _part(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def _by_hand(header: dict[str, Any], body: dict[str, Any], signature: bytes = b"") -> str:
    return f"{_part(header)}.{_part(body)}." + base64.urlsafe_b64encode(signature).rstrip(b"=").decode()


def _hmac_with_public_key(body: dict[str, Any]) -> str:
    """Sign a token with the public key as an HMAC secret (RS/HS confusion).

    PyJWT refuses to do this.
    """
    import hashlib
    import hmac

    head = f"{_part({'alg': 'HS256', 'kid': 'k1', 'typ': 'JWT'})}.{_part(body)}"
    mac = hmac.digest(PUBLIC_PEM, head.encode(), hashlib.sha256)
    return f"{head}." + base64.urlsafe_b64encode(mac).rstrip(b"=").decode()


def _tampered() -> str:
    head, _, signature = signed(claims()).split(".")
    return f"{head}.{_part(claims(sub='root'))}.{signature}"


DAY = 24 * 3600
FORGED = {
    "alg none": lambda: _by_hand({"alg": "none", "kid": "k1"}, claims()),
    "alg NONE": lambda: _by_hand({"alg": "NONE", "kid": "k1"}, claims()),
    "no alg": lambda: _by_hand({"kid": "k1"}, claims()),
    "no signature": lambda: _by_hand({"alg": "RS256", "kid": "k1"}, claims()),
    "HS256 with the public key": lambda: _hmac_with_public_key(claims()),
    "HS256 with the provider's oct key": lambda: signed(claims(), b"0123456789abcdef0123456789abcdef", "HS256", "secret"),
    "HS256 with a guessed secret": lambda: signed(claims(), "secret-secret-secret-secret-secret-secret", "HS256"),
    "another key's signature": lambda: signed(claims(), STRANGER),
    "another algorithm of the same key": lambda: signed(claims(), KEY, "RS384"),
    "PSS with the same key": lambda: signed(claims(), KEY, "PS256"),
    "a key of another kind": lambda: signed(claims(), CURVE, "ES256", "curve"),
    "RS256 under a curve's kid": lambda: signed(claims(), KEY, "RS256", "curve"),
    "changed claims": _tampered,
    "unknown kid": lambda: signed(claims(), STRANGER, kid="k2"),
    "no kid": lambda: signed(claims(), kid=None),
    "kid is a path": lambda: signed(claims(), STRANGER, kid="../../k1"),
    "key in the header": lambda: signed(claims(), STRANGER, kid="mine", jwk=RSAAlgorithm.to_jwk(STRANGER.public_key(), as_dict=True)),
    "key's address in the header": lambda: signed(claims(), STRANGER, kid="mine", jku="http://127.0.0.1:9/keys"),
    "unknown critical header": lambda: signed(claims(), crit=["x"], x=1),
    "wrong issuer": lambda: signed(claims(iss="https://login.example.evil/")),
    "begin of the issuer": lambda: signed(claims(iss="https://login.example")),
    "no issuer": lambda: signed(claims(iss=None)),
    "wrong audience": lambda: signed(claims(aud="another")),
    "wrong audiences": lambda: signed(claims(aud=["another", "agent-memory-2"])),
    "no audience": lambda: signed(claims(aud=None)),
    "expired": lambda: signed(claims(exp=int(time.time()) - 3600)),
    "no exp": lambda: signed(claims(exp=None)),
    "exp is text": lambda: signed(claims(exp="later")),
    "not yet": lambda: signed(claims(nbf=int(time.time()) + 3600)),
    "issued tomorrow": lambda: signed(claims(iat=int(time.time()) + DAY)),
    "no iat": lambda: signed(claims(iat=None)),
    "no subject": lambda: signed(claims(sub=None)),
    "subject is a number": lambda: signed(claims(sub=7)),
    "five parts": lambda: signed(claims()) + ".a.b",
    "not a token": lambda: "x.y.z",
    "empty parts": lambda: "..",
    "deep header": lambda: base64.urlsafe_b64encode(b"[" * 10_000).decode() + ".e30.",
    "an encrypted one": lambda: _by_hand({"alg": "RSA-OAEP", "enc": "A256GCM", "kid": "k1"}, claims()),
}


@pytest.mark.parametrize("make", FORGED.values(), ids=FORGED)
async def test_forged_tokens_are_refused(provider: Provider, make: Any) -> None:
    gate = provider.gate()
    with pytest.raises(Unauthenticated) as refused:
        await gate.admit(make())
    assert "https://" not in refused.value.message


async def test_valid_token_is_accepted_and_cached(provider: Provider) -> None:
    gate = provider.gate()
    token = signed(claims())
    assert await gate.admit(token) == Principal("default", "jwt:ana", Role.WRITE)
    assert await gate.admit(token) == Principal("default", "jwt:ana", Role.WRITE)
    assert provider.fetches == 1
    curve = provider.gate(OAUTH2_ALGORITHMS=("ES256",))
    assert (await curve.admit(signed(claims(sub="eve"), CURVE, "ES256", "curve"))).subject == "jwt:eve"


async def test_unknown_key_ids_trigger_at_most_one_key_fetch_per_minute(provider: Provider) -> None:
    gate = provider.gate()
    await gate.admit(signed(claims()))
    for second in range(120):
        provider.now += 1
        for _ in range(3):
            with pytest.raises(Unauthenticated):
                await gate.admit(signed(claims(), STRANGER, kid=f"new-{second}"))
    assert provider.fetches <= 3
    assert await gate.admit(signed(claims(sub="bo")))


async def test_unavailable_provider_returns_503_and_is_retried_once_a_minute(provider: Provider) -> None:
    provider.answer = httpx.ConnectError("down")
    gate = provider.gate()
    for second in range(90):
        provider.now += 1
        with pytest.raises(Unavailable) as away:
            await gate.admit(signed(claims()))
        assert 1 <= away.value.retry_after <= 61, second
    assert provider.fetches == 2
    provider.answer = _jwks()
    provider.now += 60
    assert await gate.admit(signed(claims()))


async def test_cached_keys_stay_valid_while_the_provider_is_unavailable(provider: Provider) -> None:
    gate = provider.gate()
    await gate.admit(signed(claims()))
    provider.answer = httpx.ConnectError("down")
    provider.now += 7200
    assert await gate.admit(signed(claims(sub="late")))
    assert provider.fetches == 2


@pytest.mark.parametrize(
    "answer", [b"", b"<html>", b"[]", b"{}", b'{"keys": 7}', b'{"keys": []}', b'{"keys": [{"kty": "RSA", "kid": "k1"}]}']
)
async def test_invalid_key_sets_are_refused(provider: Provider, answer: bytes) -> None:
    provider.answer = answer
    with pytest.raises(Unavailable):
        await provider.gate().admit(signed(claims()))


async def test_provider_key_rotation_is_picked_up_and_the_old_key_dropped(provider: Provider) -> None:
    gate = provider.gate()
    old = signed(claims())
    await gate.admit(old)
    fresh = RSAAlgorithm.to_jwk(STRANGER.public_key(), as_dict=True) | {"kid": "k2"}
    provider.answer = json.dumps({"keys": [fresh]}).encode()
    provider.now += 61
    assert await gate.admit(signed(claims(), STRANGER, kid="k2"))
    with pytest.raises(Unauthenticated):
        await gate.admit(old)


async def test_claims_become_tenant_user_namespaces_and_role(provider: Provider) -> None:
    gate = provider.gate(
        OAUTH2_CLAIMS={"tenant": "https://example.com/org", "user": "sub", "namespace": "memory.namespaces", "role": "scope"},
    )
    full = {"https://example.com/org": "acme", "memory": {"namespaces": ["a", "b"]}, "scope": "openid memory:read memory:admin"}
    found = await gate.admit(signed(claims(**full)))
    assert found == Principal("acme", "jwt:ana", Role.ADMIN, frozenset({"a", "b"}), frozenset({"ana"}))
    assert (await gate.admit(signed(claims(**full | {"scope": ["memory:read"]})))).role is Role.READ
    for missing in ("https://example.com/org", "memory"):
        with pytest.raises(Unauthenticated, match="lacks the claim"):
            await gate.admit(signed(claims(**{name: value for name, value in full.items() if name != missing})))
    for wrong in ("", " ", 7, ["acme"], None):
        with pytest.raises(Unauthenticated):
            await gate.admit(signed(claims(**full | {"https://example.com/org": wrong})))
    for scope in ("openid", "", None, 7 if False else []):
        with pytest.raises(Forbidden):
            await gate.admit(signed(claims(**full | {"scope": scope})))


@pytest.mark.parametrize("claim", ["tenant", "user", "namespace", "agent", "role"])
async def test_claim_of_another_type_is_refused_as_unauthenticated(provider: Provider, claim: str) -> None:
    gate = provider.gate(OAUTH2_CLAIMS={claim: "given"})
    for value in (True, False, 5, 0.5, {}, {"memory:admin": False}, [True], [["memory:admin"]], ["memory:admin", {}]):
        with pytest.raises(Unauthenticated, match="given"):
            await gate.admit(signed(claims(given=value)))


@pytest.mark.parametrize("claim", ["tenant", "user", "namespace", "agent"])
async def test_claim_with_half_an_emoji_is_refused_as_unauthenticated(provider: Provider, claim: str) -> None:
    for given in ("ana \ud83d", ["\udc00"]):
        with pytest.raises(Unauthenticated):
            await provider.gate(OAUTH2_CLAIMS={claim: "given"}).admit(signed(claims(given=given)))


@pytest.mark.parametrize("claim", ["exp", "iat", "nbf", "aud", "sub"])
async def test_registered_claim_of_another_type_is_accepted_or_refused_as_unauthenticated(provider: Provider, claim: str) -> None:
    for value in (True, 5, {}, [], [{}], float("inf"), float("nan"), "x", None):
        with contextlib.suppress(Unauthenticated):
            assert (await provider.gate().admit(signed(claims() | {claim: value}))).tenant == "default"


def _auth(**given: Any) -> AuthSettings:
    return load_settings(AUTH_MODE="oauth2", **given).auth


def test_start_fails_if_the_configuration_cannot_verify_tokens() -> None:
    with pytest.raises(StartupError, match="OAUTH2_ISSUER_URL"):
        JwtGate(_auth(), ProviderDocument(Provider().fetch, parse_keys))
    for algorithms in (("none",), ("HS256",), ("RS256", "HS512"), ()):
        with pytest.raises(StartupError, match="OAUTH2_ALGORITHMS"):
            JwtGate(_auth(OAUTH2_ISSUER_URL=ISSUER, OAUTH2_ALGORITHMS=algorithms), ProviderDocument(Provider().fetch, parse_keys))


@pytest.fixture
async def keys_url() -> AsyncGenerator[tuple[str, list[str]]]:
    """Start a server with the provider's keys. Yield its URL and the requests it receives."""
    import asyncio

    asked: list[str] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = (await reader.readuntil(b"\r\n\r\n")).decode().split(" ")[1]
        asked.append(line)
        body = _jwks() if line == "/keys" else b"x" * 2_000_000 if line == "/large" else b""
        head = b"HTTP/1.1 302 Found\r\nlocation: /keys\r\n" if line == "/moved" else b"HTTP/1.1 200 OK\r\n"
        writer.write(head + b"content-length: %d\r\nconnection: close\r\n\r\n" % len(body) + body)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", asked


async def test_oauth_tokens_authorize_requests_and_a_401_names_the_provider(redis_url: str, keys_url: tuple[str, list[str]]) -> None:
    base, asked = keys_url
    settings = load_settings(
        KEY_PREFIX="auth-jwt",
        MODEL_PROVIDER="local",
        EMBEDDING_PROVIDER="local",
        AUTH_MODE="oauth2",
        OAUTH2_ISSUER_URL=ISSUER,
        OAUTH2_AUDIENCE=AUDIENCE,
        OAUTH2_JWKS_URL=f"{base}/keys",
        OAUTH2_CLAIMS={"user": "sub"},
    )
    async with open_runtime(settings, redis_url) as runtime:
        transport = httpx.ASGITransport(create_app(settings, runtime))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            ana, bo = ({"authorization": f"Bearer {signed(claims(sub=name))}"} for name in ("ana", "bo"))
            said = {"messages": [{"role": "user", "content": "mine", "created_at": "2026-01-01T00:00:00Z"}]}
            assert (await client.put("/v1/working-memory/s", json=said, headers=ana)).status_code == 200
            assert (await client.get("/v1/working-memory/s", headers=ana)).json()["user_id"] == "ana"
            assert (await client.get("/v1/working-memory/s", headers=bo)).status_code == 404
            assert (await client.get("/v1/working-memory/s?user_id=ana", headers=bo)).status_code == 403
            assert (
                await client.get("/v1/working-memory/s", headers={"authorization": f"Bearer {FORGED['alg none']()}"})
            ).status_code == 401
            await _finds_the_provider(client, "http://localhost")
            strange = await client.get("/v1/working-memory/", headers={"host": 'x" evil="1'})
            assert strange.headers["www-authenticate"] == "Bearer"
        public = settings.model_copy(update={"server": settings.server.model_copy(update={"public_url": "https://memory.example/api/"})})
        transport = httpx.ASGITransport(create_app(public, runtime))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            await _finds_the_provider(client, "https://memory.example/api")
    assert asked == ["/keys"]


async def test_keys_and_tokens_work_beside_each_other(redis_url: str, keys_url: tuple[str, list[str]]) -> None:
    given = {"KEY_PREFIX": "auth-both", "MODEL_PROVIDER": "local", "EMBEDDING_PROVIDER": "local", "AUTH_MODE": "both"}
    given |= {"AUTH_ADMIN_TOKEN": "the-operator-of-this-server", "OAUTH2_ISSUER_URL": ISSUER, "OAUTH2_AUDIENCE": AUDIENCE}
    settings = load_settings(**given, OAUTH2_JWKS_URL=f"{keys_url[0]}/keys", OAUTH2_CLAIMS={"user": "sub"})
    async with open_runtime(settings, redis_url) as runtime:
        transport = httpx.ASGITransport(create_app(settings, runtime))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:

            async def status(method: str, path: str, credential: str, **more: Any) -> int:
                return (await client.request(method, path, headers={"x-api-key": credential}, **more)).status_code

            def ana() -> str:
                return signed(claims(sub="ana"))

            operator = {"x-api-key": "the-operator-of-this-server"}
            made = (await client.post("/v1/auth/tokens", json={"users": ["bo"]}, headers=operator)).json()
            assert await status("POST", "/v1/auth/tokens", ana(), json={}) == 403
            said = {"messages": [{"role": "user", "content": "mine", "created_at": "2026-01-01T00:00:00Z"}]}
            for credential, user, other in ((ana(), "ana", "bo"), (made["token"], "bo", "ana")):
                assert await status("PUT", f"/v1/working-memory/{user}", credential, json=said) == 200
                assert await status("GET", f"/v1/working-memory/{other}", credential) == 404
                assert await status("GET", f"/v1/working-memory/{other}?user_id={other}", credential) == 403
            forged = "ey.secret.of-a-key"
            assert (await client.post("/v1/auth/tokens", json={"token": forged}, headers=operator)).status_code == 200
            assert await status("GET", "/v1/working-memory/", forged) == 401  # has the form of a token
            for name in FORGED:
                assert await status("GET", "/v1/working-memory/", FORGED[name]()) == 401, name
            assert await status("DELETE", f"/v1/auth/tokens/{made['id']}", "the-operator-of-this-server") == 200
            assert await status("GET", "/v1/working-memory/", made["token"]) == 401
            await _finds_the_provider(client, "http://localhost")


async def _finds_the_provider(client: httpx.AsyncClient, resource: str) -> None:
    """After a 401, find the metadata the way the MCP SDK does, and check that it describes this server."""
    refused: Any = await client.post("/team/mcp", json={})
    assert refused.status_code == 401
    told = extract_resource_metadata_from_www_auth(refused)
    metadata = "/.well-known/oauth-protected-resource"
    assert told == f"{resource}{metadata}/team/mcp"
    for path, expected in ((f"{metadata}/team/mcp", f"{resource}/team/mcp"), (metadata, resource)):
        answer = await client.get(path)
        assert answer.status_code == 200
        found = ProtectedResourceMetadata.model_validate_json(answer.content)
        assert str(found.resource) == expected
        assert check_resource_allowed(requested_resource=f"{resource}/team/mcp", configured_resource=str(found.resource))
        assert [str(one) for one in found.authorization_servers] == [ISSUER]


async def test_signing_keys_are_not_read_from_redirects_or_oversized_responses(keys_url: tuple[str, list[str]]) -> None:
    base, asked = keys_url
    for path in ("/moved", "/large"):
        with pytest.raises((httpx.HTTPStatusError, ValueError), match=r"302 Found|too large"):
            await fetch_keys(_auth(OAUTH2_ISSUER_URL=ISSUER, OAUTH2_JWKS_URL=base + path))
    assert asked == ["/moved", "/large"]
