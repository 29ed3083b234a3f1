"""Define the console's paths."""

from __future__ import annotations

BASE = "/console"
_MCP = "/console/mcp"


def is_console(path: str) -> bool:
    """Return whether a path belongs to the console. `/console/mcp` does not, because it serves MCP in the namespace `console`."""
    return (path == BASE or path.startswith(BASE + "/")) and path.rstrip("/") != _MCP
