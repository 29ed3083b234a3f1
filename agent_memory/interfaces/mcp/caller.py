"""Define how an MCP server finds the caller of a request."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from starlette.requests import Request

from agent_memory.foundation.core.mcp_tools import Caller

FindCaller: TypeAlias = Callable[[Request | None], Awaitable[Caller]]
"""A function that returns an HTTP request's caller, or the stdio caller for None.

Raises AgentMemoryError.
"""
