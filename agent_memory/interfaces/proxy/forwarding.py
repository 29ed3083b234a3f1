"""Choose the headers that pass between the caller and the upstream."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from agent_memory.interfaces.proxy.authorization import OUR_CREDENTIAL
from agent_memory_client.models.llm import HEADERS

Headers: TypeAlias = Sequence[tuple[bytes, bytes]]

# RFC 9110, 7.6.1, and older ones.
_HOP_BY_HOP = frozenset(
    (b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"proxy-connection", b"te", b"trailer")
) | {b"transfer-encoding", b"upgrade"}
_OURS = frozenset(name.encode() for name in HEADERS.values()) | {OUR_CREDENTIAL}
# The HTTP client sets the first ones. Cookies belong to our own pages. Answers must be readable, so not compressed.
_NOT_FORWARDED = _HOP_BY_HOP | _OURS | {b"host", b"content-length", b"expect", b"cookie", b"accept-encoding"}
# An upstream must not set cookies for our own pages.
_NOT_RETURNED = _HOP_BY_HOP | {b"set-cookie"}


def to_upstream(headers: Headers, authorization: Sequence[bytes]) -> list[tuple[bytes, bytes]]:
    """Return a request's headers for the upstream. `authorization` is what the caller sent for it."""
    named = _named_by_connection(headers)
    kept = [(name, value) for name, value in headers if name not in _NOT_FORWARDED and name not in named]
    return [*kept, *((b"authorization", value) for value in authorization), (b"accept-encoding", b"identity")]


def to_caller(headers: Headers) -> list[tuple[bytes, bytes]]:
    """Return a response's headers for the caller, with lowercase names."""
    lowered = [(name.lower(), value) for name, value in headers]
    named = _named_by_connection(lowered)
    return [
        (name, value)
        for name, value in lowered
        if name not in _NOT_RETURNED and name not in named and not name.startswith(b"x-memory")
    ]


def _named_by_connection(headers: Headers) -> frozenset[bytes]:
    """Return the names that `Connection` lists: they are for the next hop only."""
    lists = [value for name, value in headers if name == b"connection"]
    return frozenset(name.strip().lower() for value in lists for name in value.split(b","))
