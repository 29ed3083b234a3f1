"""Ties to other libraries; each needs an extra of the same name. `get_memory_tools` is LangChain's."""

from __future__ import annotations

from agent_memory_client.integrations.langchain import get_memory_tools, get_memory_tools_langchain

__all__ = ["get_memory_tools", "get_memory_tools_langchain"]
