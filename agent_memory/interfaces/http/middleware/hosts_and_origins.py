"""Check host names and origins to protect servers without credentials from malicious web pages.

The `Host` header reveals DNS rebinding. `Origin` or `Sec-Fetch-Site` reveals requests from other
origins.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.types import ASGIApp, Receive, Scope, Send

from agent_memory.features.access.exposure import is_loopback
from agent_memory.foundation.api.errors import render
from agent_memory.foundation.core.errors import Forbidden, WrongHost
from agent_memory.foundation.core.settings import Settings

_READING = frozenset({"GET", "HEAD", "OPTIONS"})
# Values of `Sec-Fetch-Site` for other origins.
_OTHER_SITES = frozenset({b"cross-site", b"same-site"})
_PORTS = {b"http": 80, b"https": 443}
_MOST_REMEMBERED = 1000


def allowed_names(settings: Settings, host: str) -> frozenset[str] | None:
    """Return the host names allowed besides the machine's own, or None for any name.

    If ALLOWED_HOSTS is unset, any name is allowed when the server requires credentials or does not
    listen on a loopback address.
    """
    names = _names(settings.server.allowed_hosts)
    if "*" in names or not (names or (is_loopback(host) and not settings.auth.required)):
        return None
    return names


def _names(setting: str) -> frozenset[str]:
    return frozenset(name.strip().casefold().strip("[]") for name in setting.split(",")) - {""}


class HostMiddleware:
    """Middleware that rejects unknown host names with 421, and foreign origins with 403.

    Origins are only checked for requests that change data. `names` contains the allowed host names,
    or is None to allow any.
    """

    def __init__(self, app: ASGIApp, *, names: frozenset[str] | None, origins: frozenset[str]) -> None:
        self._app = app
        self._names = names
        self._origins = origins
        self._allowed: set[bytes] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            host, origin, site = b"", None, b""
            for name, value in scope["headers"]:
                if name == b"host":
                    host = value
                    if not (value in self._allowed or self._is_ours(value)):
                        message = "unknown host name: use a name of this machine, or add this name to ALLOWED_HOSTS"
                        await render(WrongHost(message))(scope, receive, send)
                        return
                elif name == b"origin":
                    origin = value
                elif name == b"sec-fetch-site":
                    site = value
            if (origin is not None or site) and not _reads(scope) and not self._may_ask(scope["scheme"], host, origin, site):
                message = "pages of other origins may not send this request: add its origin to CORS_ALLOWED_ORIGINS"
                await render(Forbidden(message))(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _is_ours(self, address: bytes) -> bool:
        if self._names is None:
            return True
        try:
            host = (urlsplit(b"//" + address).hostname or b"").decode("ascii").rstrip(".")
        except ValueError:  # not ASCII, or brackets that do not match
            return False
        if not (host in self._names or is_loopback(host)):
            return False
        if len(self._allowed) < _MOST_REMEMBERED:
            self._allowed.add(address)
        return True

    def _may_ask(self, scheme: str, host: bytes, origin: bytes | None, site: bytes) -> bool:
        if "*" in self._origins:
            return True
        if origin is None:
            return site not in _OTHER_SITES
        if origin.decode("latin-1") in self._origins:
            return True
        own, server_origin = _parts(origin), _parts(scheme.encode() + b"://" + host)
        if own is not None and site == b"same-origin":
            # Behind a TLS proxy, only the browser knows the real scheme.
            server_origin = _parts(own[0] + b"://" + host)
        return own is not None and own == server_origin


def _reads(scope: Scope) -> bool:
    # A GET on /sse opens an MCP stream, which does more than read.
    return scope["method"] in _READING and not scope["path"].rstrip("/").endswith("/sse")


def _parts(origin: bytes) -> tuple[bytes, bytes, int] | None:
    try:
        parts = urlsplit(origin)
        port = parts.port
    except ValueError:  # brackets that do not match, or an invalid port
        return None
    if parts.scheme not in _PORTS or not parts.hostname or parts.username is not None:
        return None
    return parts.scheme, parts.hostname, _PORTS[parts.scheme] if port is None else port
