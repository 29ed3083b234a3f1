"""The archive feature: MCP tools for agents that manage their own long-term memory."""

from __future__ import annotations

from agent_memory.foundation.core.feature import Feature

FEATURE = Feature(name="archive", tools=("agent_memory.extensions.archive.tools:TOOLS",))
