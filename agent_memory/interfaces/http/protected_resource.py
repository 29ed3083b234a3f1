"""Serve the OAuth metadata of the protected resource (RFC 9728) to MCP clients."""

from __future__ import annotations

import re

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import Scope

from agent_memory.foundation.api.responses import JsonResponse
from agent_memory.foundation.core.settings import Settings

METADATA_PATH = "/.well-known/oauth-protected-resource"
OAUTH_PATHS = frozenset({"/.well-known/oauth-authorization-server", "/authorize", "/token", "/register", "/revoke"})
"""Public paths of the authorization server. Its consent page belongs to the console."""
_MCP = re.compile(r"(/[A-Za-z0-9._~-]+)?/mcp\Z")
_HOST = re.compile(r"[A-Za-z0-9.:\[\]-]{1,260}\Z")


def resource_of(settings: Settings, scope: Scope) -> str | None:
    """Return the server's address: PUBLIC_URL, or else the request's host. Return None if that host is invalid."""
    if settings.server.public_url is not None:
        return settings.server.public_url.rstrip("/")
    host = next((value.decode("latin-1") for name, value in scope["headers"] if name == b"host"), "")
    return f"{scope['scheme']}://{host}" if _HOST.match(host) else None


def challenge_of(settings: Settings, scope: Scope) -> str:
    """Return the WWW-Authenticate header. If clients can log in with OAuth, the header contains the address of the OAuth metadata."""
    resource = resource_of(settings, scope) if _offers_oauth(settings) else None
    if resource is None:
        return "Bearer"
    mcp = path if _MCP.match(path := scope["path"].rstrip("/")) else ""
    return f'Bearer resource_metadata="{resource}{METADATA_PATH}{mcp}"'


def metadata_routes(settings: Settings) -> list[BaseRoute]:
    """Return the routes of the metadata if clients can log in with OAuth, or else an empty list."""

    async def metadata(request: Request) -> Response:
        resource = resource_of(settings, request.scope)
        if resource is None:
            return JsonResponse({"detail": "host: must say how this server is reached", "code": "invalid_host"}, 400)
        body: dict[str, object] = {
            "resource": resource + request.scope["path"].rstrip("/").partition(METADATA_PATH)[2],
            "authorization_servers": [resource if settings.auth.oauth_server else settings.auth.oauth2_issuer_url],
            "bearer_methods_supported": ["header"],
            "resource_name": "agent-memory",
        }
        if settings.auth.oauth_server:
            body["scopes_supported"] = ["memory:read", "memory:write"]
        return JsonResponse(body, headers={"cache-control": "no-store"})

    paths = (METADATA_PATH, f"{METADATA_PATH}/mcp", f"{METADATA_PATH}/{{namespace}}/mcp")
    return [Route(path, metadata, methods=["GET"], include_in_schema=False) for path in paths] if _offers_oauth(settings) else []


def _offers_oauth(settings: Settings) -> bool:
    return settings.auth.takes_jwts or settings.auth.oauth_server
