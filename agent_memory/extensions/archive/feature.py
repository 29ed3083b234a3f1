"""The archive feature: MCP tools that let an agent write and search long-term memory, and search conversations."""

from __future__ import annotations

from agent_memory.foundation.core.feature import Feature

FEATURE = Feature(name="archive", tools=("agent_memory.extensions.archive.tools:TOOLS",))
