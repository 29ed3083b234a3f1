"""Accept another product's authorization scheme on that product's paths."""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

_SCHEME = b"token "


class TokenSchemeMiddleware:
    """Treat `Authorization: Token …` as `Bearer …` on paths that begin with one of `prefixes`."""

    def __init__(self, app: ASGIApp, *, prefixes: tuple[str, ...]) -> None:
        self._app = app
        self._prefixes = prefixes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"].startswith(self._prefixes):
            # Change the scope in place: the log reads the route from the outer scope.
            scope["headers"] = [_as_bearer(name, value) for name, value in scope["headers"]]
        await self._app(scope, receive, send)


def _as_bearer(name: bytes, value: bytes) -> tuple[bytes, bytes]:
    if name == b"authorization" and value[: len(_SCHEME)].lower() == _SCHEME:
        return name, b"Bearer " + value[len(_SCHEME) :]
    return name, value
