"""Refuse to start without authentication on a reachable address, unless the operator allows it."""

from __future__ import annotations

from ipaddress import ip_address

from agent_memory.foundation.core.errors import StartupError
from agent_memory.foundation.core.logs import get_logger
from agent_memory.foundation.core.settings import Settings

log = get_logger(__name__)

_HOW = "AUTH_MODE=token asks for API keys (docs/running/access.md)"


def check_exposure(settings: Settings, host: str) -> None:
    """Raise StartupError if `host` exposes an unauthenticated server, unless settings allow it."""
    if not (settings.auth.required or settings.auth.open_to_network or is_loopback(host)):
        raise StartupError(
            f"HOST={host} gives access to everyone who can reach this machine: set AUTH_MODE=token (or oauth2, or both), "
            "listen on 127.0.0.1, or set AUTH_DISABLED_ON_NETWORK=true if a proxy or firewall protects it"
        )


def warn_of_exposure(settings: Settings, host: str) -> None:
    if settings.auth.required:
        return
    if is_loopback(host):
        log.warning("AUTH_MODE=disabled: every program on this machine may read and delete everything", host=host, hint=_HOW)
    else:
        log.warning("AUTH_MODE=disabled: everybody who can reach this address may read and delete everything", host=host, hint=_HOW)


def is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
