"""Adapters for other libraries. Each adapter needs the package extra with the same name.

Calls raise the errors in `agent_memory_client.errors`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agent_memory_client.integrations.langchain import get_memory_tools, get_memory_tools_langchain

__all__ = ["get_memory_tools", "get_memory_tools_langchain"]


def __getattr__(name: str) -> Any:
    # Imported on first use, because users of the other adapters may not have LangChain.
    if name in __all__:
        from agent_memory_client.integrations import langchain  # noqa: PLC0415

        return getattr(langchain, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
