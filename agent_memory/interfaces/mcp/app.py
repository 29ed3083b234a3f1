"""An MCP Apps page that displays a user's profile inside an MCP host."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from mcp import types

EXTENSION = "io.modelcontextprotocol/ui"
TOOL = "get_profile"
URI = "ui://agent-memory/profile.html"
MIME_TYPE = "text/html;profile=mcp-app"
# The page loads nothing, so it needs no exception from the host's content security policy.
_META = {"ui": {"prefersBorder": True}}

LISTED = types.Resource(
    uri=URI, name="profile_page", title="Profile", description="Shows the answer of get_profile.", mime_type=MIME_TYPE, _meta=_META
)


@cache
def page() -> types.TextResourceContents:
    text = files("agent_memory.interfaces.mcp").joinpath("app.html").read_text("utf-8")
    return types.TextResourceContents(uri=URI, mime_type=MIME_TYPE, text=text, _meta=_META)
