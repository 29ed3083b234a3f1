"""Choose which headers to pass between the caller and the upstream."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from agent_memory.foundation.core.errors import BadInput
from agent_memory.interfaces.proxy.authorization import OUR_CREDENTIAL
from agent_memory_client.models import ACTING_USER_HEADER

Headers: TypeAlias = Sequence[tuple[bytes, bytes]]

_ACTING_USER = ACTING_USER_HEADER.lower().encode()
# Headers for one hop: the list in RFC 9110, 7.6.1, and older headers.
_HOP_BY_HOP = frozenset(
    (b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"proxy-connection", b"te", b"trailer")
) | {b"transfer-encoding", b"upgrade"}
_OURS = b"x-memory"
"""The prefix of our own headers, in requests and responses."""
# The HTTP client sets the first ones. Cookies belong to our own pages. We read answers, so they must not be compressed.
_NOT_FORWARDED = _HOP_BY_HOP | {b"host", b"content-length", b"expect", b"cookie", b"accept-encoding", OUR_CREDENTIAL, _ACTING_USER}
# Our server sets the date. An upstream must not set cookies for our own pages.
_NOT_RETURNED = _HOP_BY_HOP | {b"date", b"set-cookie"}


def our_headers(headers: Headers) -> dict[str, str]:
    """Return the request headers that are meant for the proxy itself.

    Raises BadInput if a value is not valid UTF-8.
    """
    ours: dict[str, str] = {}
    for name, value in headers:
        if name.startswith(_OURS):
            try:
                ours[name.decode("latin-1")] = value.decode()
            except UnicodeDecodeError:
                raise BadInput("must be UTF-8", field=name.decode("latin-1"), where="header") from None
    return ours


def to_upstream(headers: Headers, authorization: Sequence[bytes]) -> list[tuple[bytes, bytes]]:
    """Return the headers to send upstream. `authorization` contains the upstream credentials."""
    return [*_passing(headers, _NOT_FORWARDED), *((b"authorization", value) for value in authorization), (b"accept-encoding", b"identity")]


def to_caller(headers: Headers) -> list[tuple[bytes, bytes]]:
    """Return the response headers to send to the caller, with lowercase names."""
    return _passing([(name.lower(), value) for name, value in headers], _NOT_RETURNED)


def _passing(headers: Headers, stopped: frozenset[bytes]) -> list[tuple[bytes, bytes]]:
    lists = [value for name, value in headers if name == b"connection"]
    stopped |= {name.strip().lower() for value in lists for name in value.split(b",")}
    return [(name, value) for name, value in headers if name not in stopped and not name.startswith(_OURS)]
