"""Serve OAuth protected resource metadata (RFC 9728)."""

from __future__ import annotations

import re
from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import Scope

from agent_memory.foundation.api.responses import JsonResponse
from agent_memory.foundation.core.settings import Settings

METADATA_PATH = "/.well-known/oauth-protected-resource"
_MCP = re.compile(r"(/[A-Za-z0-9._~-]+)?/mcp\Z")
_HOST = re.compile(r"[A-Za-z0-9.:\[\]-]{1,260}\Z")


def resource_of(settings: Settings, scope: Scope) -> str | None:
    """Return PUBLIC_URL or the request's address, or None if its host is invalid."""
    if settings.server.public_url is not None:
        return settings.server.public_url.rstrip("/")
    host = next((value.decode("latin-1") for name, value in scope["headers"] if name == b"host"), "")
    return f"{scope['scheme']}://{host}" if _HOST.match(host) else None


def provider_metadata(settings: Settings) -> Mapping[str, object]:
    """Return metadata about the login provider, or {} if the server does not accept JWTs."""
    return {"authorization_servers": [settings.auth.oauth2_issuer_url]} if settings.auth.takes_jwts else {}


def challenge_of(settings: Settings, login: Mapping[str, object], scope: Scope) -> str:
    """Return the WWW-Authenticate header, with the metadata's address if OAuth is available."""
    resource = resource_of(settings, scope) if login else None
    if resource is None:
        return "Bearer"
    mcp = path if _MCP.match(path := scope["path"].rstrip("/")) else ""
    return f'Bearer resource_metadata="{resource}{METADATA_PATH}{mcp}"'


def metadata_routes(settings: Settings, login: Mapping[str, object]) -> list[BaseRoute]:
    """Return the routes for the metadata, or [] if `login` is empty."""

    async def metadata(request: Request) -> Response:
        resource = resource_of(settings, request.scope)
        if resource is None:
            return JsonResponse({"detail": "host: must say how this server is reached", "code": "invalid_host"}, 400)
        body: dict[str, object] = {
            "resource": resource + request.scope["path"].rstrip("/").partition(METADATA_PATH)[2],
            "bearer_methods_supported": ["header"],
            "resource_name": "agent-memory",
            **login,
        }
        return JsonResponse(body, headers={"cache-control": "no-store"})

    paths = (METADATA_PATH, f"{METADATA_PATH}/mcp", f"{METADATA_PATH}/{{namespace}}/mcp")
    return [Route(path, metadata, methods=["GET"], include_in_schema=False) for path in paths] if login else []
