"""Lets in requests by names of ours only, so that no web page reaches a server without credentials through a name of its own.

A page whose name is made to resolve to this machine (DNS rebinding) is of one origin with us in its browser's eyes; the `Host` header gives
it away. A page of another origin cannot read our answers, but could still make us act with a plain request; its `Origin` header tells.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.types import ASGIApp, Receive, Scope, Send

from agent_memory.api.errors import render
from agent_memory.errors import Forbidden, Misdirected
from agent_memory.services.access import is_loopback
from agent_memory.settings import Settings

_READING = frozenset({"GET", "HEAD", "OPTIONS"})
_MOST_KNOWN = 1000


def allowed_names(settings: Settings, host: str) -> frozenset[str] | None:
    """The host names that a server which listens on `host` is reached by, besides those of this machine; None: by any.

    Without ALLOWED_HOSTS it is any where credentials are asked for, and where it listens on more than this machine.
    """
    names = _names(settings.server.allowed_hosts)
    if "*" in names or not (names or (is_loopback(host) and not settings.auth.required)):
        return None
    return names | _names(settings.mcp.allowed_hosts)  # MCP is one of our faces


def _names(given: str) -> frozenset[str]:
    return frozenset(name.strip().casefold().strip("[]") for name in given.split(",")) - {""}


class HostCheck:
    """Pure ASGI: answers 421 to other `Host` headers, and 403 to other pages' requests that would change something.

    `origins` are those of other pages that may ask (CORS_ALLOWED_ORIGINS).
    """

    def __init__(self, app: ASGIApp, *, names: frozenset[str], origins: frozenset[str]) -> None:
        self._app = app
        self._names = names
        self._origins = origins
        self._good: set[bytes] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            reads = scope["method"] in _READING
            for name, value in scope["headers"]:
                if name == b"host" and value not in self._good and not self._is_ours(b"//" + value):
                    message = "the server is not known by this name: call it by one of this machine, or add the name to ALLOWED_HOSTS"
                    await render(Misdirected(message))(scope, receive, send)
                    return
                if name == b"origin" and not reads and not self._may_ask(value):
                    message = "a page of another origin may not ask for this: add its origin to CORS_ALLOWED_ORIGINS"
                    await render(Forbidden(message))(scope, receive, send)
                    return
        await self._app(scope, receive, send)

    def _is_ours(self, address: bytes) -> bool:
        """Whether the host of `//host:port` (or of an origin) is one of ours, whatever the port."""
        try:
            host = (urlsplit(address.decode("ascii")).hostname or "").rstrip(".")
        except ValueError:  # no ASCII, or brackets that do not match
            return False
        if not (host in self._names or is_loopback(host)):
            return False
        if address.startswith(b"//") and len(self._good) < _MOST_KNOWN:
            self._good.add(address[2:])
        return True

    def _may_ask(self, origin: bytes) -> bool:
        return "*" in self._origins or origin.decode("latin-1") in self._origins or self._is_ours(origin)
