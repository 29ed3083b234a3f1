"""Recognize this server's own addresses as resource indicators (RFC 8707)."""

from __future__ import annotations

import re

_PATH = re.compile(r"(/[^/?#]+)?/mcp/?\Z|/?\Z")


def is_our_resource(issuer: str, resource: str) -> bool:
    """True if a resource is this server, or MCP on this server."""
    return resource.startswith(issuer) and _PATH.match(resource.removeprefix(issuer)) is not None
