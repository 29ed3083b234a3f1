"""The commands that features bring. A feature adds one line to the list: the function that adds its commands to the program.

That function stands in `agent_memory/<feature>/commands.py`, which imports nothing heavy: `agent-memory --help` loads all of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, Protocol

import typer

COMMANDS: tuple[str, ...] = (
    "agent_memory.blocks.commands:register",
    "agent_memory.profile.commands:register",
    "agent_memory.timeline.commands:register",
    "agent_memory.procedures.commands:register",
)
"""As import strings ("module:name"): functions of the program and of what calls the API (`Register`)."""


class CallApi(Protocol):
    """Asks the API of a running server (`url`), else that of the configured store."""

    def __call__(
        self, method: str, path: str, query: Mapping[str, Any] | None = None, body: Any = None, *, url: str | None, api_key: str | None
    ) -> Any:
        """The JSON of the answer. Raises NotFound, and StartupError for every other refusal."""
        ...


Register = Callable[[typer.Typer, CallApi], None]


def call_api(
    method: str, path: str, query: Mapping[str, Any] | None = None, body: Any = None, *, url: str | None, api_key: str | None
) -> Any:
    """As `CallApi`."""
    from agent_memory.cli.api_client import MemoryTarget, reach

    async def ask() -> Any:
        async with reach(MemoryTarget(url, api_key)) as api:
            return await api.call(method, path, query, body)

    return asyncio.run(ask())


def register(root: typer.Typer, commands: Sequence[str] = COMMANDS) -> None:
    """Adds the commands of all features."""
    for name in commands:
        module, _, function = name.partition(":")
        add: Register = getattr(import_module(module), function)
        add(root, call_api)
