"""Base of the tools that extensions offer to models."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from agent_memory_client._tools.definitions import Definition
from agent_memory_client._tools.scope import ToolScope
from agent_memory_client.resources.base import Resource


class ModelTools(Resource, ABC):
    """Tools for one noun. A subclass lists `definitions` and runs their calls."""

    definitions: ClassVar[tuple[Definition, ...]] = ()

    @abstractmethod
    async def run_tool(self, name: str, values: Mapping[str, Any], scope: ToolScope) -> dict[str, Any]:
        """Return a tool's answer: a dict with `summary` for the model, or `error`.

        The names in `scope` bind the model. A MemoryClientError becomes the answer of a failed call.
        """
        ...
