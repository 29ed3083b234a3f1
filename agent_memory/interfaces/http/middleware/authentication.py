"""Authenticate every request. Not installed if AUTH_MODE=disabled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

from agent_memory.features.access.credentials import CredentialGate, credential_of
from agent_memory.foundation.api.errors import render
from agent_memory.foundation.api.principals import PRINCIPAL
from agent_memory.foundation.core.errors import AgentMemoryError, Unauthenticated, Unavailable
from agent_memory.interfaces.console.paths import is_console
from agent_memory.interfaces.http.document import pages
from agent_memory.interfaces.http.protected_resource import METADATA_PATH

# Public paths: health, metadata and documentation.
OPEN_PATHS = frozenset({"/v1/health", METADATA_PATH, *pages.PATHS})
# Without credentials, these paths return a shorter answer. Console paths also pass, because the console checks the
# browser's login.
TERSE_PATHS = frozenset({"/v1/ready"})

SCHEMES: dict[str, dict[str, str]] = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "An API key, or a JWT from the issuer that the server trusts."},
    "api_key": {"type": "apiKey", "in": "header", "name": "X-API-Key", "description": "The same, in the header that some clients use."},
}
"""The ways to send credentials, as OpenAPI security schemes."""


def describe(document: dict[str, Any], *, required: bool) -> None:
    """Add security schemes to OpenAPI operations, except on open paths.

    The schemes are optional unless `required`.
    """
    document.setdefault("components", {})["securitySchemes"] = SCHEMES
    schemes: list[dict[str, list[str]]] = [{name: []} for name in SCHEMES]
    for path, methods in document["paths"].items():
        if path not in OPEN_PATHS:
            for operation in methods.values():
                operation["security"] = schemes if required and path not in TERSE_PATHS else [{}, *schemes]


class AuthenticationMiddleware:
    """Put the caller's `Principal` into the scope, or respond with 401 or 503.

    `gate` returns None until the runtime is open. `open_paths` are public, like `OPEN_PATHS`.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        gate: Callable[[], CredentialGate | None],
        challenge: Callable[[Scope], str],
        open_paths: frozenset[str] = frozenset(),
    ) -> None:
        self._app = app
        self._open_paths = OPEN_PATHS | open_paths
        self._gate = gate
        self._challenge = challenge

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        path = scope["path"].rstrip("/")
        # `known_caller.py` may have identified the caller already.
        if path not in self._open_paths and not path.startswith(f"{METADATA_PATH}/") and PRINCIPAL not in scope:
            try:
                credential = credential_of(scope["headers"])
                if credential is not None:
                    gate = self._gate()
                    if gate is None:
                        raise Unavailable("the server is starting: try again")
                    scope[PRINCIPAL] = await gate.admit(credential)
                elif path not in TERSE_PATHS and not is_console(path):
                    raise Unauthenticated("send an API key or a token: Authorization: Bearer … or X-API-Key: …")
            except AgentMemoryError as error:
                await render(error, challenge=self._challenge(scope))(scope, receive, send)
                return
        await self._app(scope, receive, send)
