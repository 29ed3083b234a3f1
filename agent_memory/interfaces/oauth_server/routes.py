"""Define the OAuth authorization server's routes.

Some clients ignore the metadata and assume these paths.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any
from urllib.parse import urlsplit

from mcp.server.auth.handlers.register import RegistrationHandler
from mcp.server.auth.handlers.token import TokenHandler
from mcp.server.auth.middleware.client_auth import ClientAuthenticator
from mcp.server.auth.settings import ClientRegistrationOptions
from mcp.server.transport_security import RequestBodyLimitMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, request_response
from starlette.types import ASGIApp

from agent_memory.foundation.api.operation import NamedRoute
from agent_memory.foundation.api.responses import JsonResponse
from agent_memory.foundation.core.errors import StartupError
from agent_memory.foundation.core.settings import Settings
from agent_memory.interfaces.console.frame import page_endpoint
from agent_memory.interfaces.oauth_server.connections import Connections
from agent_memory.interfaces.oauth_server.consent import CONSENT_PATH, show_consent
from agent_memory.interfaces.oauth_server.provider import SCOPES, Provider, is_our_resource

_BODY_BYTES = 16 * 1024
# Limits per minute: requests from one address, and registrations from all addresses.
_REQUESTS, _REGISTRATIONS, _ALL_REGISTRATIONS = 300, 30, 120
_NO_STORE = {"cache-control": "no-store"}


def oauth_server(settings: Settings, rest_app: ASGIApp) -> tuple[Sequence[BaseRoute], frozenset[str], Mapping[str, object]]:
    """Return the routes, the public paths, and the login part of the resource metadata.

    Raises StartupError if the settings are not suitable.
    """
    issuer = (settings.server.public_url or "").rstrip("/")
    parts = urlsplit(issuer)
    is_safe = parts.scheme == "https" or parts.hostname in ("localhost", "127.0.0.1", "::1")
    if settings.auth.mode != "token" or not settings.server.console or not is_safe or parts.path:
        raise StartupError("OAUTH_SERVER needs AUTH_MODE=token, the console, and PUBLIC_URL: https, without a path")

    async def metadata(request: Request) -> Response:
        return JsonResponse(_metadata(issuer), headers={"cache-control": "max-age=3600"})

    async def authorize(request: Request) -> Response:
        # The browser comes from another site and omits the strict cookie of its login, but not after this page.
        target = f"{request.scope.get('root_path', '').rstrip('/')}{CONSENT_PATH}?{request.url.query}"
        return HTMLResponse(f'<!doctype html><meta http-equiv="refresh" content="0;url={escape(target)}">', headers=_NO_STORE)

    async def register(request: Request) -> Response:
        connections = await _counted(request, "register", _REGISTRATIONS)
        await connections.limit("registrations", _ALL_REGISTRATIONS)
        provider: Any = Provider(connections)
        return await RegistrationHandler(provider, ClientRegistrationOptions(enabled=True)).handle(request)

    async def token(request: Request) -> Response:
        provider: Any = Provider(await _counted(request, "token", _REQUESTS))
        form = await request.form()
        if any(len(form.getlist(name)) > 1 for name in form):
            return _refused("invalid_request", "send each parameter once")
        if "resource" in form and not is_our_resource(issuer, str(form["resource"])):
            return _refused("invalid_target", f"resource: this server is {issuer}/mcp")
        return await TokenHandler(provider, ClientAuthenticator(provider)).handle(request)

    async def revoke(request: Request) -> Response:
        connections, form = await _counted(request, "token", _REQUESTS), await request.form()
        secret, client_id = form.get("token"), form.get("client_id")
        if not isinstance(secret, str) or not isinstance(client_id, str):
            return _refused("invalid_request", "send token and client_id")
        await connections.revoke_secret(secret, client_id)
        return Response(headers=_NO_STORE)

    posts = {"/register": register, "/token": token, "/revoke": revoke}
    gets = {"/.well-known/oauth-authorization-server": metadata, "/authorize": authorize}
    routes = [
        *(NamedRoute(path, each, include_in_schema=False) for path, each in gets.items()),
        *(
            NamedRoute(path, RequestBodyLimitMiddleware(request_response(each), _BODY_BYTES), methods=["POST"], include_in_schema=False)
            for path, each in posts.items()
        ),
        NamedRoute(CONSENT_PATH, page_endpoint(show_consent, settings, rest_app), methods=["GET", "POST"], include_in_schema=False),
    ]
    return routes, frozenset({*gets, *posts}), {"authorization_servers": [issuer], "scopes_supported": list(SCOPES)}


def _metadata(issuer: str) -> dict[str, object]:
    """Return the authorization server's metadata (RFC 8414)."""
    return {
        "issuer": issuer,
        "authorization_endpoint": f"{issuer}/authorize",
        "token_endpoint": f"{issuer}/token",
        "registration_endpoint": f"{issuer}/register",
        "revocation_endpoint": f"{issuer}/revoke",
        "scopes_supported": list(SCOPES),
        "response_types_supported": ["code"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
        "token_endpoint_auth_methods_supported": ["none"],
        "revocation_endpoint_auth_methods_supported": ["none"],
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": True,
    }


async def _counted(request: Request, name: str, per_minute: int) -> Connections:
    """Count a request from the caller's IP address. Raises TooMany."""
    connections: Connections = request.app.state.runtime[Connections]
    await connections.limit(f"{name} {request.client.host if request.client else ''}", per_minute)
    return connections


def _refused(error: str, description: str) -> Response:
    return JsonResponse({"error": error, "error_description": description}, 400, _NO_STORE)
