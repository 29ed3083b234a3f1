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
_HOST = re.compile(r"[A-Za-z0-9.:\[\]-]{1,260}\Z")


def resource_of(settings: Settings, scope: Scope) -> str | None:
    """Return the server's address: PUBLIC_URL, or else the request's host. Return None if that host is invalid."""
    if settings.server.public_url is not None:
        return settings.server.public_url.rstrip("/")
    host = next((value.decode("latin-1") for name, value in scope["headers"] if name == b"host"), "")
    return f"{scope['scheme']}://{host}" if _HOST.match(host) else None


def challenge_of(settings: Settings, scope: Scope) -> str:
    """Return the WWW-Authenticate header. With AUTH_MODE=oauth2, it contains the address of the metadata."""
    resource = resource_of(settings, scope) if settings.auth.mode == "oauth2" else None
    return "Bearer" if resource is None else f'Bearer resource_metadata="{resource}{METADATA_PATH}"'


def metadata_routes(settings: Settings) -> list[BaseRoute]:
    """Return the route of the metadata if AUTH_MODE is oauth2, or else an empty list."""

    async def metadata(request: Request) -> Response:
        resource = resource_of(settings, request.scope)
        if resource is None:
            return JsonResponse({"detail": "host: must say how this server is reached", "code": "invalid_host"}, 400)
        body = {
            "resource": resource,
            "authorization_servers": [settings.auth.oauth2_issuer_url],
            "bearer_methods_supported": ["header"],
            "resource_name": "agent-memory",
        }
        return JsonResponse(body, headers={"cache-control": "no-store"})

    return [Route(METADATA_PATH, metadata, methods=["GET"], include_in_schema=False)] if settings.auth.mode == "oauth2" else []
