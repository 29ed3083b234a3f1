"""Define the console's paths."""

from __future__ import annotations

BASE = "/console"
_MCP = "/console/mcp"


def is_console(path: str) -> bool:
    """True for the console's paths, except `/console/mcp`, which serves MCP."""
    return (path == BASE or path.startswith(BASE + "/")) and path.rstrip("/") != _MCP
