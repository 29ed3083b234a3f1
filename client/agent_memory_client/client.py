"""Makes the client available under the archived client's module name."""

from __future__ import annotations

from agent_memory_client._tools.calls import ToolCallResolutionResult, UnifiedToolCall
from agent_memory_client.config import MemoryClientConfig
from agent_memory_client.legacy import MemoryAPIClient, create_memory_client

__all__ = ["MemoryAPIClient", "MemoryClientConfig", "ToolCallResolutionResult", "UnifiedToolCall", "create_memory_client"]
