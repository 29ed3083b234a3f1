"""An OAuth provider for the MCP SDK's handlers.

Clients are public: they have no secrets, and PKCE (S256) protects their codes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import inf
from typing import Any

from mcp.server.auth.provider import (
    AuthorizationCode,
    RefreshToken,
    RegistrationError,
    TokenError,
    construct_redirect_uri,
)
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyUrl

from agent_memory.interfaces.oauth_server.connections import ACCESS_SECONDS, Connections, Grant

SCOPES = ("memory:read", "memory:write")
_MOST_REDIRECTS = 10
_MOST_URI_CHARS = 2000
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
# RFC 8252: native apps use reversed domain names as schemes. These well-known apps use other schemes.
_APP_SCHEMES = frozenset({"cursor", "vscode", "vscode-insiders", "windsurf"})
_RESOURCE_PATH = re.compile(r"(/[^/?#]+)?/mcp/?\Z|/?\Z")


class Code(AuthorizationCode):
    grant: Grant


class Refresh(RefreshToken):
    grant: Grant


class Client(OAuthClientInformationFull):
    def validate_redirect_uri(self, redirect_uri: AnyUrl | None) -> AnyUrl:
        """Return the URI if it is registered.

        For loopback URIs, any port is allowed (RFC 8252, 7.3).
        """
        if redirect_uri is not None and _is_loopback(redirect_uri):
            registered = [_without_port(each) for each in self.redirect_uris or () if _is_loopback(each)]
            if _without_port(redirect_uri) in registered:
                return redirect_uri
        return super().validate_redirect_uri(redirect_uri)


def _is_loopback(uri: AnyUrl) -> bool:
    return uri.scheme == "http" and uri.host in _LOOPBACK


def _without_port(uri: AnyUrl) -> tuple[Any, ...]:
    return uri.host, uri.path or "/", uri.query


class Provider:
    """Registers clients and issues tokens for the SDK's handlers.

    This server's consent page and revocation route replace the other methods of the SDK's provider
    interface.
    """

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def get_client(self, client_id: str) -> Client | None:
        document = await self._connections.find_client(client_id)
        return None if document is None else Client.model_validate_json(document)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        """Store a client with no secret. The response shows what the server has changed."""
        uris = client_info.redirect_uris or []
        if len(uris) > _MOST_REDIRECTS or not all(map(is_safe_redirect, uris)):
            raise RegistrationError(
                "invalid_redirect_uri",
                f"give at most {_MOST_REDIRECTS} redirect_uris: https, http on this machine, or a native app's scheme; without fragment",
            )
        client_info.token_endpoint_auth_method, client_info.scope = "none", " ".join(SCOPES)
        client_info.client_secret = client_info.client_secret_expires_at = None
        fields = {
            "client_id",
            "client_name",
            "redirect_uris",
            "scope",
            "token_endpoint_auth_method",
            "grant_types",
            "client_id_issued_at",
        }
        await self._connections.add_client(client_info.client_id, client_info.model_dump_json(include=fields, exclude_none=True))

    async def load_authorization_code(self, client: OAuthClientInformationFull, authorization_code: str) -> Code | None:
        grant = await self._connections.find_grant("code", authorization_code, client.client_id)
        if grant is None:
            return None
        return Code(
            code=authorization_code,
            scopes=list(grant.scopes),
            expires_at=inf,  # Redis, not this machine's clock, ends codes.
            client_id=grant.client_id,
            code_challenge=grant.challenge,
            redirect_uri=AnyUrl(grant.redirect_uri),
            redirect_uri_provided_explicitly=True,
            grant=grant,
        )

    async def exchange_authorization_code(self, client: OAuthClientInformationFull, authorization_code: Code) -> OAuthToken:
        return await self._renew(authorization_code.grant)

    async def load_refresh_token(self, client: OAuthClientInformationFull, refresh_token: str) -> Refresh | None:
        grant = await self._connections.find_grant("refresh", refresh_token, client.client_id)
        return None if grant is None else Refresh(token=refresh_token, client_id=grant.client_id, scopes=list(grant.scopes), grant=grant)

    async def exchange_refresh_token(self, client: OAuthClientInformationFull, refresh_token: Refresh, scopes: Sequence[str]) -> OAuthToken:
        return await self._renew(refresh_token.grant)

    async def _renew(self, grant: Grant) -> OAuthToken:
        tokens = await self._connections.renew(grant)
        if tokens is None:
            raise TokenError("invalid_grant", "this connection was revoked, or its API key: log in again")
        access, refresh = tokens
        return OAuthToken(access_token=access, expires_in=ACCESS_SECONDS, scope=" ".join(grant.scopes), refresh_token=refresh)


def is_our_resource(issuer: str, resource: str) -> bool:
    """True if a resource indicator (RFC 8707) refers to this server or its MCP endpoints."""
    return resource.startswith(issuer) and _RESOURCE_PATH.match(resource.removeprefix(issuer)) is not None


def is_safe_redirect(uri: AnyUrl) -> bool:
    """True if it is safe to send a code or error to this address."""
    if len(str(uri)) > _MOST_URI_CHARS or uri.fragment is not None or uri.username is not None or uri.password is not None:
        return False
    if uri.scheme == "https":
        return bool(uri.host)
    return _is_loopback(uri) or uri.scheme in _APP_SCHEMES or ("." in uri.scheme and all(uri.scheme.split(".")))


def redirect_to(uri: str, issuer: str, state: str | None, **answer: str) -> str:
    """Add the response and the issuer (RFC 9207) to a client's redirect URI."""
    return construct_redirect_uri(uri, **answer, state=state, iss=issuer)
