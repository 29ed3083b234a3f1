"""The MCP interface."""

from __future__ import annotations

from typing import Literal

from pydantic import SecretStr

from agent_memory.foundation.core.settings.base import Group, archived, setting


class McpSettings(Group):
    host: str = archived("127.0.0.1", "MCP_HOST")
    port: int = archived(9000, "MCP_PORT", ge=0, le=65535)
    on_api: bool = setting(True, "MCP_ON_API", meaning="whether the API offers MCP as well, at `/mcp`")
    tools: Literal["core", "agent", "all"] = setting(
        "all",
        "MCP_TOOLS",
        meaning="tools that MCP offers: `core` (eight, in few words), `agent` (also blocks, archive, timeline and procedures) or `all`",
    )
    namespace: str | None = archived(None, "DEFAULT_MCP_NAMESPACE", max_length=512)
    user_id: str | None = archived(None, "DEFAULT_MCP_USER_ID", max_length=512)
    token: SecretStr | None = setting(
        None, "MCP_TOKEN", meaning="credential of the one who speaks over stdio; needed when `AUTH_MODE` asks for credentials"
    )
