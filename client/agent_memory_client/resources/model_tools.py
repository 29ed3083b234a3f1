"""Base class for the tools that extensions provide to models."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from agent_memory_client._tools.definitions import Definition
from agent_memory_client._tools.scope import ToolScope
from agent_memory_client.resources.base import Resource


class ModelTools(Resource, ABC):
    """Tools for one resource. Subclasses set `definitions` and run the calls."""

    definitions: ClassVar[tuple[Definition, ...]] = ()

    @abstractmethod
    async def run_tool(self, name: str, values: Mapping[str, Any], scope: ToolScope) -> dict[str, Any]:
        """Run a tool and return a dict with a `summary` for the model, or an `error`.

        The model cannot override the values in `scope`. Raises MemoryClientError.
        """
        ...
