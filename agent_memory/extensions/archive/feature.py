"""Register the archive: MCP tools with which an agent writes and searches long-term memory and conversations."""

from __future__ import annotations

from agent_memory.foundation.core.feature import Feature

FEATURE = Feature(name="archive", tools=("agent_memory.extensions.archive.tools:TOOLS",))
