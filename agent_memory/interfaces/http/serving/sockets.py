"""Open the listening sockets first, so that a port conflict causes a single, clear error."""

from __future__ import annotations

import errno
import socket
from collections.abc import Generator
from contextlib import ExitStack, contextmanager

from agent_memory.foundation.core.errors import StartupError

_BACKLOG = 2048


@contextmanager
def listening(host: str, port: int) -> Generator[list[socket.socket], None, None]:
    """Yield sockets that listen on every address of `host`. If `port` is 0, use a free port.

    Early connections wait until the server is ready. Raises StartupError if an address is not
    available.
    """
    try:
        infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        raise StartupError(f"{host!r} is not an address to listen on; choose another with --host or HOST") from error
    addresses = list(dict.fromkeys((family, address) for family, _, _, _, address in infos))
    with ExitStack() as stack:
        # Port 0 gives a port that is free on one address only.
        yield [stack.enter_context(_listen(family, host, address)) for family, address in (addresses if port else addresses[:1])]


def _listen(family: int, host: str, address: tuple[object, ...]) -> socket.socket:
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        raise StartupError(_why_not(error, host, address[1])) from error
    return listener


def _why_not(error: OSError, host: str, port: object) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"port {port} on {host} is taken; choose another with --port or PORT"
    if error.errno == errno.EACCES:
        return f"port {port} on {host} needs rights that this user does not have; choose one above 1023 with --port or PORT"
    if error.errno == errno.EADDRNOTAVAIL:
        return f"{host} is not an address of this machine; choose another with --host or HOST"
    return f"cannot listen on {host} port {port}: {error.strerror or error}"


def shown_address(listeners: list[socket.socket], host: str) -> str:
    """Return `host:port` in URL form, with the actual port."""
    port = listeners[0].getsockname()[1]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
