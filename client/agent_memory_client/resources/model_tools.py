"""A group of tools for models that a feature brings: what they are called, and what runs a call of one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from agent_memory_client._tools.definitions import Definition
from agent_memory_client._tools.scope import ToolScope
from agent_memory_client.resources.base import Resource


class ModelTools(Resource, ABC):
    """Tools over one noun. A subclass names its `definitions` and runs calls of them."""

    definitions: ClassVar[tuple[Definition, ...]] = ()

    @abstractmethod
    async def run_tool(self, name: str, values: Mapping[str, Any], scope: ToolScope) -> dict[str, Any]:
        """What the call of a tool of the group answers: a dict, with `summary` for the model, or `error`.

        Whatever the `scope` names binds the model. Raises MemoryClientError, which becomes the answer of a call that failed.
        """
        ...
